package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// licence is a file that has to go wherever a module's code goes.
type licence struct {
	name, text string
	ids        []string // of SPDX; none: it is a notice
}

var (
	licenceName = regexp.MustCompile(`(?i)^(licen[cs]e|copying|unlicense)`)
	noticeName  = regexp.MustCompile(`(?i)^(notice|patents)`)
)

// licencesIn returns the licences and notices in a module's directory. An error is returned when there is no licence,
// or one that is not known here: then somebody has to look at it.
func licencesIn(dir string) ([]licence, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var all []licence
	known := false
	for _, e := range entries {
		isLicence := licenceName.MatchString(e.Name())
		if e.IsDir() || filepath.Ext(e.Name()) == ".go" || !isLicence && !noticeName.MatchString(e.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		l := licence{name: e.Name(), text: strings.TrimSpace(strings.ReplaceAll(string(text), "\r\n", "\n"))}
		if isLicence {
			if l.ids = recognised(l.text); l.ids == nil {
				return nil, fmt.Errorf("the licence in %s is not known; look at it, and add its words to "+
					"deploy/inventory/licence.go", filepath.Join(dir, e.Name()))
			}
			known = true
		}
		all = append(all, l)
	}
	if !known {
		return nil, errors.New("there is no licence in " + dir + "; a module without one may not be given on")
	}
	return all, nil
}

// words tell licences apart, by their SPDX identifiers. Spaces stand for any white space.
var words = map[string]*regexp.Regexp{
	"Apache-2.0":   spaced(`Apache License,? Version 2\.0`),
	"BSD-2-Clause": spaced(`Redistribution and use in source and binary forms`),
	"BSD-3-Clause": spaced(`Redistribution and use in source and binary forms(.|\n)*may be used to endorse or promote`),
	"ISC":          spaced(`Permission to use, copy, modify, and(/or)? distribute this software for any purpose`),
	"MIT":          spaced(`Permission is hereby granted, free of charge`),
	"MPL-2.0":      spaced(`Mozilla Public License,? Version 2\.0`),
	"Unlicense":    spaced(`This is free and unencumbered software released into the public domain`),
}

func spaced(text string) *regexp.Regexp {
	return regexp.MustCompile(`(?i)` + strings.ReplaceAll(text, " ", `\s+`))
}

// recognised are the licences in a text, sorted.
func recognised(text string) (ids []string) {
	for _, id := range slices.Sorted(maps.Keys(words)) {
		if words[id].MatchString(text) {
			ids = append(ids, id)
		}
	}
	if slices.Contains(ids, "BSD-3-Clause") { // which has all words of the other
		ids = slices.DeleteFunc(ids, func(id string) bool { return id == "BSD-2-Clause" })
	}
	return ids
}

// identifiers are those of several files, each once.
func identifiers(licences []licence) (ids []string) {
	for _, l := range licences {
		ids = append(ids, l.ids...)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// texts is one text with all licences and notices, each once, and of which modules they are.
func texts(modules []module) string {
	var b strings.Builder
	b.WriteString("The firn binary contains code of these Go modules:\n\n")
	of := map[string][]string{} // modules by text
	var order []string
	for _, m := range modules {
		fmt.Fprintf(&b, "  %s %s: %s\n", m.path, m.version, strings.Join(identifiers(m.licences), ", "))
		for _, l := range m.licences {
			if of[l.text] == nil {
				order = append(order, l.text)
			}
			of[l.text] = append(of[l.text], fmt.Sprintf("%s %s, %s", m.path, m.version, l.name))
		}
	}
	for _, text := range order {
		fmt.Fprintf(&b, "\n%s\n\n%s\n\n%s\n", strings.Repeat("=", 80), strings.Join(of[text], "\n"), text)
	}
	return b.String()
}
