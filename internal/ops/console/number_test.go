package console

import (
	"testing"
	"time"
)

func TestSigned(t *testing.T) {
	for d, want := range map[time.Duration]string{
		time.Hour: "+1h", -time.Hour: "-1h", 90 * time.Minute: "+1h30m", 10 * time.Minute: "+10m",
		10 * time.Second:  "+10s",
		100 * time.Second: "+1m40s", time.Hour + 5*time.Second: "+1h0m5s", 0: "+0s", 6667 * time.Millisecond: "+6.667s",
		20 * time.Hour: "+20h",
	} {
		if got := Signed(d); got != want {
			t.Errorf("%v is written %q, want %q", d, got, want)
		}
	}
}
