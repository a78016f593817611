package member

// drill is called before a command that the member owes the log is sent. Tests of crashes put another in its
// place.
func drill(string) {}
