// Takes IDs with each client in Go that was generated, and prints them: a line for each, with the generator, a tab and
// the ID. It asks for numbers, as docs/clients.md says. The argument is the node's address.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/ogen-go/ogen/ogenerrors"

	"github.com/firn-id/firn/internal/test/e2e/testdata/openapi/oapi"
	"github.com/firn-id/firn/internal/test/e2e/testdata/openapi/ogen"
)

// taker takes one ID, and as many as are wanted.
type taker struct {
	one  func() (int64, error)
	many func(count int) ([]int64, error)
}

func main() {
	for generator, of := range map[string]func(string) (taker, error){"oapi-codegen": byOapi, "ogen": byOgen} {
		t, err := of(os.Args[1])
		if err == nil {
			err = t.take(generator)
		}
		if err != nil {
			log.Fatalf("%s: %v", generator, err)
		}
	}
}

// take takes 1000 IDs one by one, and 4000 by the thousand.
func (t taker) take(generator string) error {
	for range 1000 {
		id, err := t.one()
		if err != nil {
			return err
		}
		fmt.Printf("%s\t%d\n", generator, id)
	}
	for range 4 {
		ids, err := t.many(1000)
		if err != nil {
			return err
		}
		for _, id := range ids {
			fmt.Printf("%s\t%d\n", generator, id)
		}
	}
	return nil
}

func byOapi(node string) (taker, error) {
	c, err := oapi.NewClientWithResponses(node)
	return taker{
		func() (int64, error) {
			ids := oapi.TakeIDParamsIdsNumber
			a, err := c.TakeIDWithResponse(context.Background(), &oapi.TakeIDParams{Ids: &ids})
			if err != nil || a.JSON200 == nil {
				return 0, fmt.Errorf("%v, %+v", err, a)
			}
			return a.JSON200.Id, nil
		},
		func(count int) ([]int64, error) {
			ids := oapi.TakeIDsParamsIdsNumber
			a, err := c.TakeIDsWithResponse(context.Background(), &oapi.TakeIDsParams{Count: &count, Ids: &ids})
			if err != nil || a.JSON200 == nil {
				return nil, fmt.Errorf("%v, %+v", err, a)
			}
			return a.JSON200.Ids, nil
		},
	}, err
}

// noToken is for nodes that have no tokens.
type noToken struct{}

func (noToken) Bearer(context.Context, ogen.OperationName) (ogen.Bearer, error) {
	return ogen.Bearer{}, ogenerrors.ErrSkipClientSecurity
}

func byOgen(node string) (taker, error) {
	c, err := ogen.NewClient(node, noToken{})
	numbers := ogen.NewOptIDs(ogen.IDsNumber)
	return taker{
		func() (int64, error) {
			a, err := c.TakeID(context.Background(), ogen.TakeIDParams{Ids: numbers})
			given, ok := a.(*ogen.GivenIDHeaders)
			if !ok {
				return 0, fmt.Errorf("%v, %+v", err, a)
			}
			return given.Response.ID, nil
		},
		func(count int) ([]int64, error) {
			a, err := c.TakeIDs(context.Background(), ogen.TakeIDsParams{Count: ogen.NewOptInt(count), Ids: numbers})
			given, ok := a.(*ogen.GivenIDsHeaders)
			if !ok {
				return nil, fmt.Errorf("%v, %+v", err, a)
			}
			return given.Response.Ids, nil
		},
	}, err
}
