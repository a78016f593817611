package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const mit = "Permission is hereby granted, free\nof charge, to any person"

// Every module has a licence that is known, or there is no inventory, and so no package.
func TestLicencesIn(t *testing.T) {
	for _, tt := range []struct {
		files map[string]string
		ids   string
		fails string
	}{
		{map[string]string{"LICENSE": mit, "README.md": mit}, "MIT", ""},
		{map[string]string{"license.txt": mit, "NOTICE": "by me"}, "MIT", ""},
		{map[string]string{"LICENSE": mit + "\n\nApache License\n   Version 2.0, January 2004"}, "Apache-2.0 MIT", ""},
		{
			map[string]string{"LICENSE-MIT": mit, "COPYING": "Redistribution and use in source and binary forms, with"},
			"BSD-2-Clause MIT", "",
		},
		{map[string]string{"LICENCE": "Redistribution and use in source and binary forms, with ... may be\r\n" +
			"used to endorse or promote products"}, "BSD-3-Clause", ""},
		{map[string]string{"README.md": mit, "licenses.go": mit, "NOTICE": mit}, "", "there is no licence in "},
		{map[string]string{}, "", "there is no licence in "},
		{map[string]string{"LICENSE": "All rights reserved."}, "", "LICENSE is not known; look at it"},
	} {
		dir := t.TempDir()
		for name, text := range tt.files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got, err := licencesIn(dir)
		switch ids := strings.Join(identifiers(got), " "); {
		case tt.fails != "":
			if err == nil || !strings.Contains(err.Error(), tt.fails) {
				t.Errorf("%v: %v, want an error with %q", tt.files, err, tt.fails)
			}
		case err != nil || ids != tt.ids:
			t.Errorf("%v: %q, %v, want %q", tt.files, ids, err, tt.ids)
		}
	}
}

// A licence that several modules have stands there once, with all of them.
func TestTexts(t *testing.T) {
	one, other := licence{"LICENSE", mit, []string{"MIT"}}, licence{"NOTICE", "by me", nil}
	got := texts([]module{
		{path: "a", version: "v1", licences: []licence{one}},
		{path: "b", version: "v2", licences: []licence{one, other}},
	})
	for _, want := range []string{
		"  a v1: MIT\n  b v2: MIT\n", "\na v1, LICENSE\nb v2, LICENSE\n\n" + mit + "\n",
		"\nb v2, NOTICE\n\nby me\n",
	} {
		if strings.Count(got, want) != 1 {
			t.Errorf("%q stands there %d times, want 1:\n%s", want, strings.Count(got, want), got)
		}
	}
}

// The licence of firn itself is known, and so is that of the Go it is built with.
func TestOwnLicence(t *testing.T) {
	got, err := licencesIn(filepath.Join("..", ".."))
	if err != nil || !slices.Equal(identifiers(got), []string{"Apache-2.0"}) {
		t.Errorf("%v, %v", identifiers(got), err)
	}
}
