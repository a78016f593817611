// This file lets processor.go declare functions without bodies.
