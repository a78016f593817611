package node

// without is what a node has on Linux and not here; docs/operate.md says what follows.
const without = ""
