// Command constant answers every call with the same IDs: what firn serve costs beyond this is firn's. The sections http
// and grpc of the benchmark start it.
//
//	constant http address body
//	constant grpc address batch
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"google.golang.org/grpc"

	"github.com/firn-id/firn/api/firnv1"
)

func main() {
	fmt.Fprintln(os.Stderr, "constant:", run(os.Args[1:]))
	os.Exit(1)
}

func run(args []string) error {
	if len(args) != 3 {
		return errors.New("want http with an address and a body, or grpc with an address and the size of a batch")
	}
	l, err := net.Listen("tcp", args[1])
	if err != nil {
		return err
	}
	if args[0] == "http" {
		return serveHTTP(l, []byte(args[2]))
	}
	batch, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	c := &constant{ids: make([]int64, batch)}
	for i := range c.ids {
		c.ids[i] = 1<<60 + int64(i)
	}
	s := grpc.NewServer()
	firnv1.RegisterFirnServer(s, c)
	return s.Serve(l)
}

// serveHTTP does what firn serve does, with the same limits, and with the headers of an ID.
func serveHTTP(l net.Listener, body []byte) error {
	contentType, cacheControl, vary := []string{"application/json"}, []string{"no-store"}, []string{"Accept"}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/v1/id", func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		h["Content-Type"] = contentType
		h["Cache-Control"] = cacheControl
		h["Vary"] = vary
		_, _ = w.Write(body) // it fails only when the caller has gone away
	})
	s := &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       15 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
	}
	return s.Serve(l)
}

// constant gives the same IDs again and again.
type constant struct {
	firnv1.UnimplementedFirnServer
	ids []int64
}

func (c *constant) Next(context.Context, *firnv1.NextRequest) (*firnv1.NextResponse, error) {
	return &firnv1.NextResponse{Id: c.ids[0]}, nil
}

func (c *constant) NextBatch(context.Context, *firnv1.NextBatchRequest) (*firnv1.NextBatchResponse, error) {
	return &firnv1.NextBatchResponse{Ids: c.ids}, nil
}

func (c *constant) Stream(_ *firnv1.StreamRequest, to grpc.ServerStreamingServer[firnv1.StreamResponse]) error {
	for {
		if err := to.Send(&firnv1.StreamResponse{Ids: c.ids}); err != nil {
			return err
		}
	}
}
