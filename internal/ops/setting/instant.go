package setting

import (
	"fmt"
	"time"
)

// Instant is a point in time. The zero value stands for no point in time.
type Instant struct {
	time.Time
	daily bool // it was given as a time of day
}

// ParseInstant reads a point in time: a time of day such as 03:12, the latest one that has passed; a date and a time
// such as "2026-11-22 03:12"; a duration such as 15m, which ended now; or RFC 3339. Without an offset it is local time.
func ParseInstant(text string) (Instant, error) {
	now := time.Now()
	for _, format := range []string{"15:04", time.TimeOnly} {
		if at, err := time.Parse(format, text); err == nil {
			today := time.Date(now.Year(), now.Month(), now.Day(), at.Hour(), at.Minute(), at.Second(),
				at.Nanosecond(), time.Local)
			if today.After(now) {
				today = today.AddDate(0, 0, -1)
			}
			return Instant{today, true}, nil
		}
	}
	for _, format := range []string{"2006-01-02 15:04", time.DateTime, time.RFC3339} {
		if at, err := time.ParseInLocation(format, text, time.Local); err == nil {
			return Instant{Time: at}, nil
		}
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return Instant{Time: now.Add(-ago)}, nil
	}
	return Instant{},
		fmt.Errorf("%.40q is not a time; want one such as 03:12, \"2026-11-22 03:12\", 2026-11-22T03:12:00Z, or 15m "+
			"for 15 minutes ago", text)
}

// Following returns the first such time of day from another instant on, and i itself when i is no time of day.
func (i Instant) Following(other Instant) Instant {
	if !i.daily {
		return i
	}
	day := other.Local()
	at := time.Date(day.Year(), day.Month(), day.Day(), i.Hour(), i.Minute(), i.Second(), i.Nanosecond(), time.Local)
	if at.Before(other.Time) {
		at = at.AddDate(0, 0, 1)
	}
	return Instant{at, true}
}
