package node

// without is what a node has on Linux and not here; docs/install.md says what follows.
const without = ""
