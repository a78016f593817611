// Command other prints IDs of another library, one per line, until it is ended: ten in each millisecond at most. firn
// bench --against runs it in the tests.
//
//	other bwmarrin NODE
//	other sonyflake MACHINE [2006-01-02]
//
// The date is when Sonyflake's time begins, by default that of its version 2.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/bwmarrin/snowflake"
	"github.com/sony/sonyflake/v2"
)

func main() {
	fmt.Fprintln(os.Stderr, "other:", run(os.Args[1:]))
	os.Exit(1)
}

func run(args []string) error {
	if len(args) < 2 || len(args) > 3 {
		return errors.New("want bwmarrin or sonyflake, a node ID, and for sonyflake perhaps a date")
	}
	node, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	next, err := generator(args[0], node, args[2:])
	if err != nil {
		return err
	}
	out := bufio.NewWriter(os.Stdout)
	for range time.Tick(time.Millisecond) {
		for range 10 {
			id, err := next()
			if err != nil {
				return err
			}
			fmt.Fprintln(out, id)
		}
		if err := out.Flush(); err != nil {
			return err
		}
	}
	return nil
}

func generator(library string, node int, start []string) (next func() (int64, error), err error) {
	switch library {
	case "bwmarrin":
		n, err := snowflake.NewNode(int64(node))
		return func() (int64, error) { return int64(n.Generate()), nil }, err
	case "sonyflake":
		s := sonyflake.Settings{MachineID: func() (int, error) { return node, nil }}
		for _, date := range start {
			if s.StartTime, err = time.Parse(time.DateOnly, date); err != nil {
				return nil, err
			}
		}
		g, err := sonyflake.New(s)
		if err != nil {
			return nil, err
		}
		return g.NextID, nil
	}
	return nil, fmt.Errorf("%q is no library; want bwmarrin or sonyflake", library)
}
