package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/firn-id/firn/client"
)

// Take IDs from a service of several nodes, one of which is not ready.
func Example() {
	ready := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"id":1541815603606036480,"id_str":"1541815603606036480"}`)
	}))
	defer ready.Close()
	unready := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprint(w, `{"error":{"code":"not_ready","message":"it is joining"}}`)
	}))
	defer unready.Close()

	c, err := client.New([]string{ready.URL, unready.URL})
	if err != nil {
		panic(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	id, err := c.Next(ctx)
	var refused *client.Error
	switch {
	case errors.As(err, &refused) && refused.Status == http.StatusTooManyRequests:
		fmt.Println("again in", refused.RetryAfter)
	case err != nil:
		panic(err)
	}
	fmt.Println(id)
	// Output: 1541815603606036480
}
