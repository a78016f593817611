package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/CycloneDX/cyclonedx-go"
	"github.com/xeipuuv/gojsonschema"
)

// bill reads a software bill of materials: it must be as CycloneDX' own schema wants it, which lies beside the library.
func bill(in io.Reader, out io.Writer) error {
	text, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/CycloneDX/cyclonedx-go").Output()
	if err != nil {
		return fmt.Errorf("the schema is not found from this directory; want tools/check: %w", err)
	}
	file := func(name string) gojsonschema.JSONLoader {
		return gojsonschema.NewReferenceLoader("file://" +
			filepath.Join(strings.TrimSpace(string(dir)), "schema", name))
	}
	loader := gojsonschema.NewSchemaLoader()
	if err := errors.Join(
		loader.AddSchema("http://cyclonedx.org/schema/spdx.schema.json", file("spdx.schema.json")),
		loader.AddSchema("http://cyclonedx.org/schema/jsf-0.82.schema.json", file("jsf-0.82.schemax.json")),
	); err != nil {
		return err
	}
	schema, err := loader.Compile(file("bom-1.6.schema.json"))
	if err != nil {
		return err
	}
	result, err := schema.Validate(gojsonschema.NewBytesLoader(text))
	if err != nil {
		return err
	}
	if !result.Valid() {
		return fmt.Errorf("%v", result.Errors())
	}
	var read cyclonedx.BOM
	if err := cyclonedx.NewBOMDecoder(bytes.NewReader(text), cyclonedx.BOMFileFormatJSON).Decode(&read); err != nil {
		return err
	}
	if read.Components == nil || read.Dependencies == nil {
		return errors.New("it has no components, or does not say what depends on them")
	}
	for _, c := range *read.Components {
		fmt.Fprintln(out, c.Name, c.Version)
	}
	return nil
}
