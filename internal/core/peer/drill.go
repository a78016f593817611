package peer

// drill is called before the member sends a command that it owes the log. Crash tests replace it.
func drill(string) {}
