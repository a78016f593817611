package grpcapi

// OccupyStreams makes the server have as many streams as it can.
func (s *Server) OccupyStreams() { s.streams.Store(maxStreams) }
