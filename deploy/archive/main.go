// Archive packs a directory into a .tar.gz or .zip, as the name of the file says: for packagers. The same directory
// gives the same bytes on every machine: entries are sorted, belong to nobody, and have the time SOURCE_DATE_EPOCH.
//
//	archive DIRECTORY FILE
package main

import (
	"archive/tar"
	"archive/zip"
	"compress/flate"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "archive:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("%d arguments; want it as in: archive DIRECTORY FILE", len(args))
	}
	seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH: %w; want the time of the source in seconds since 1970", err)
	}
	write := writeTar
	if strings.HasSuffix(args[1], ".zip") {
		write = writeZip
	} else if !strings.HasSuffix(args[1], ".tar.gz") {
		return fmt.Errorf("%s is a file of another kind; want .tar.gz or .zip", args[1])
	}
	out, err := os.Create(args[1])
	if err != nil {
		return err
	}
	return errors.Join(write(out, args[0], time.Unix(seconds, 0).UTC()), out.Close())
}

// mode returns the permissions of an entry: what else a file has comes from the umask.
func mode(info fs.FileInfo) fs.FileMode {
	if info.IsDir() || info.Mode()&0o100 != 0 {
		return 0o755
	}
	return 0o644
}

// walk calls add for a directory and all that is in it, sorted, with names that begin with that of the directory.
func walk(dir string, add func(name string, info fs.FileInfo, content io.Reader) error) error {
	return fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		whole := path.Join(filepath.Base(dir), name)
		if d.IsDir() {
			return add(whole+"/", info, nil)
		}
		if !info.Mode().IsRegular() {
			return fmt.Errorf("%s is neither a file nor a directory", filepath.Join(dir, name))
		}
		f, err := os.Open(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		defer f.Close()
		return add(whole, info, f)
	})
}

func writeTar(out io.Writer, dir string, at time.Time) error {
	zipped, err := gzip.NewWriterLevel(out, gzip.BestCompression)
	if err != nil {
		return err
	}
	archive := tar.NewWriter(zipped)
	err = walk(dir, func(name string, info fs.FileInfo, content io.Reader) error {
		header := tar.Header{
			Typeflag: tar.TypeDir, Name: name, Mode: int64(mode(info)), ModTime: at,
			Format: tar.FormatPAX,
		}
		if content == nil {
			return archive.WriteHeader(&header)
		}
		header.Typeflag, header.Size = tar.TypeReg, info.Size()
		if err := archive.WriteHeader(&header); err != nil {
			return err
		}
		_, err := io.Copy(archive, content)
		return err
	})
	return errors.Join(err, archive.Close(), zipped.Close())
}

func writeZip(out io.Writer, dir string, at time.Time) error {
	archive := zip.NewWriter(out)
	archive.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(w, flate.BestCompression)
	})
	err := walk(dir, func(name string, info fs.FileInfo, content io.Reader) error {
		header := zip.FileHeader{Name: name, Method: zip.Deflate, Modified: at}
		header.SetMode(mode(info))
		if content == nil {
			header.Method = zip.Store
			header.SetMode(mode(info) | fs.ModeDir)
		}
		w, err := archive.CreateHeader(&header)
		if err != nil || content == nil {
			return err
		}
		_, err = io.Copy(w, content)
		return err
	})
	return errors.Join(err, archive.Close())
}
