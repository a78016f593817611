// Package deploy writes the configurations of what stands around firn: load balancers, the init system, Kubernetes,
// monitoring. Parameters go in, a text comes out, and nothing else is touched; firn gen puts it on the command line.
//
// Every kind is a struct of parameters. New... returns it with its defaults, and Text checks them and writes the file.
// No parameter can put anything into a file but itself: what is not an address, a name or a path is refused with a
// [ParameterError]. It does not run the programs, and does not install anything.
package deploy
