// Command constant answers every request over HTTP with the same JSON: what firn serve costs beyond this is firn's. The
// section http of the benchmark starts it.
//
//	constant address body
package main

import (
	"fmt"
	"net/http"
	"os"
	"time"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "constant: want an address and a body")
		os.Exit(2)
	}
	fmt.Fprintln(os.Stderr, "constant:", serve(os.Args[1], []byte(os.Args[2])))
	os.Exit(1)
}

// serve does what ../../cmd/firn/web.go does, with the same limits, and with the headers of an ID.
func serve(address string, body []byte) error {
	contentType, cacheControl := []string{"application/json"}, []string{"no-store"}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/v1/id", func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		h["Content-Type"] = contentType
		h["Cache-Control"] = cacheControl
		_, _ = w.Write(body) // who asked has gone away if it fails
	})
	s := &http.Server{
		Addr:              address,
		Handler:           mux,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       15 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
	}
	return s.ListenAndServe()
}
