package grpcapi

// OccupyStreams makes the server have as many streams as it can.
func (s *Server) OccupyStreams() { s.streams.Store(maxStreams) }

// MaxBatch is how many IDs a batch can have.
const MaxBatch = maxBatch
