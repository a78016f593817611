package auth

import "testing"

func TestLocalHost(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "LocalHost": true, "localhost.": true, "localhost:8080": true, "LOCALHOST.:8080": true,
		"localhost:": true,
		"127.0.0.1":  true, "127.0.0.1:8080": true, "10.1.2.3": true, "[::1]": true, "[::1]:8080": true, "::1": true,
		"[fe80::1%eth0]:80": true,

		"": false, ":8080": false, ".": false, "localhost..": false, "evil.example": false, "evil.example:8080": false,
		"localhost.evil.example": false, "127.0.0.1.nip.io": false, "127.0.0.1.nip.io:80": false,
		"localhost@evil.example": false,
		"localhost:8080:8080":    false, "127.1": false, "2130706433": false, "0x7f000001": false,
		"notlocalhost": false,
	} {
		if got := LocalHost(host); got != want {
			t.Errorf("%q: %v, want %v", host, got, want)
		}
	}
}
