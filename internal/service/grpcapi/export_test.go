package grpcapi

// LimitCalls allows so many calls at a time. It is to be called before there are any.
func (s *Server) LimitCalls(calls int) { s.limit(calls) }

// MaxBatch is how many IDs a batch can have.
const MaxBatch = maxBatch

// TakeWithin is how long an answer may go untaken.
const TakeWithin = takeWithin

// StatusMessage is statusMessage.
var StatusMessage = statusMessage
