// Package doctest holds the tests that keep the documentation true: they run every command on its pages, compare what
// the pages show with what comes out, compile the code, and follow the links. It is not for examples of the library:
// those are Example functions beside the code. What runs commands is slow: it needs FIRN_TESTS=all, or a name in -run.
//
// The pages are README.md, CODE_OF_CONDUCT.md, CONTRIBUTING.md, SECURITY.md, docs/*.md, and the README.md of bench,
// internal/ops/deploy and of each example. The tests do what a reader does who has cloned the repository and follows a
// page from top to bottom: in the repository's root, with firn on the path, in a network of its own, where all ports
// are free and all names in [hosts] are known. What a page writes is gone afterwards.
//
// # Blocks
//
// A fenced block says what it is:
//
//	sh       commands. They are run by bash, and must all succeed. If the last one serves until it is told to end
//	         (firn serve), it goes on beside the rest of the page, which continues when it is ready.
//	text     right after sh, or after a sentence that ends with a colon: what that prints on standard output; of a
//	         command that serves, some lines of it, in any order
//	console  commands after "$ ", and between them what they print
//	go       is compiled, each block alone, and may use what [declared] has
//	yaml     a file for firn serve --config or --tokens: is read by it. Other YAML must be YAML
//	json     must be JSON
//
// A command in sh may be followed by a comment "# prints " and a line that it prints. In what is shown, IDs, member IDs
// and numbers of IDs/s stand for any, times of now for any time of now, spaces for any number of spaces, "..." for
// anything in a line, and a line "..." for any lines. Everything else must come out as it stands there: fixed times for
// instance.
//
// Text of other kinds, such as a drawing or a part of a log, is in a block without a language, or with another one.
//
// # Instructions
//
// Comments in the page, right above a block, change how it is run:
//
//	<!-- doctest: first: COMMAND -->    runs it before the block; for what a reader has, such as a service
//	<!-- doctest: end -->               ends what runs still, as Ctrl-C in each terminal does
//	<!-- doctest: prompt -->            may fail where the machine was late, which is then reported: for what
//	                                    ends in an error when programs have to wait for a second
//	<!-- doctest: not run: REASON -->   leaves it out, for one of the [reasons]. No firn command may be left out
package doctest
