package main

import "context"

// runFill measures batches of IDs of a layout that never exhausts.
func runFill(ctx context.Context, s settings) ([]table, error) {
	const fill = "firn Fill of 1024, 1+21 bits"
	contenders := []contender{firnFill(fill, wide, 1024), firnNext(nextFirn, wide), bwmarrin(nextBwmarrin, 1, 21)}
	var tables []table
	for _, goroutines := range []int{1, 2} {
		got, _, err := measure(ctx, s, contenders, goroutines)
		if err != nil {
			return nil, err
		}
		t := table{
			Title: "fill: batches of 1024 IDs, " + plural(goroutines),
			columns: []column{
				{"min_ns", "min ns/ID", "%.2f"},
				{"median_ns", "median ns/ID", "%.2f"},
				{"to_peer", "to the peer", "%.4f"},
			},
		}
		for _, c := range contenders {
			t.add(c.name, got.least(c.name), got.median(c.name), got.ratio(c.name, nextBwmarrin))
		}
		if goroutines == 1 {
			t.Targets = append(t.Targets, atMost("Fill, median ns/ID", got.median(fill), 1))
		}
		tables = append(tables, t)
	}
	return tables, nil
}
