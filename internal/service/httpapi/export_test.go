package httpapi

// Methods are those that the handler serves, by path.
func (h *Handler) Methods() map[string][]string { return h.methods }
