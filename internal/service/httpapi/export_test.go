package httpapi

import "github.com/firn-id/firn/internal/service/calls"

// Statuses are those of all codes.
func Statuses() map[calls.Code]int { return statuses }

// Methods are those that the handler serves, by path.
func (h *Handler) Methods() map[string][]string { return h.methods }
