//go:build !firn_portable

package spread

import _ "unsafe" // for go:linkname

// processor returns the number of the processor on which the caller runs. The runtime promises not to take procPin and
// procUnpin away from those that use them so; with the build tag firn_portable nothing of the runtime is used.
func processor() int {
	p := procPin()
	procUnpin()
	return p
}

//go:linkname procPin runtime.procPin
func procPin() int

//go:linkname procUnpin runtime.procUnpin
func procUnpin()
