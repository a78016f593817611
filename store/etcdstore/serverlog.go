package etcdstore

import (
	"context"
	"log/slog"
	"sync/atomic"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// etcdLog passes the errors of an embedded server on, and nothing else, until it
// is muted. It is safe for concurrent use.
type etcdLog struct {
	to    *slog.Logger
	muted atomic.Bool
}

func newEtcdLog(to *slog.Logger) *etcdLog { return &etcdLog{to: to} }

func (l *etcdLog) zap() *zap.Logger { return zap.New(logCore{log: l}) }

func (l *etcdLog) mute() { l.muted.Store(true) }

func (l *etcdLog) error(message string, err error) {
	if err != nil && !l.muted.Load() {
		l.to.Error(message, "err", err)
	}
}

// harmless are errors of a healthy server: a new one can't tell its storage
// version until its database was first written, tries every few seconds, and
// complains each time.
var harmless = map[string]bool{"failed to update storage version": true}

// logCore is what zap writes to.
type logCore struct {
	log    *etcdLog
	fields []zapcore.Field
}

func (c logCore) Enabled(level zapcore.Level) bool { return level >= zapcore.ErrorLevel }

func (c logCore) With(fields []zapcore.Field) zapcore.Core {
	return logCore{c.log, append(c.fields[:len(c.fields):len(c.fields)], fields...)}
}

func (c logCore) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(entry.Level) {
		return checked.AddCore(entry, c)
	}
	return checked
}

func (c logCore) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	if entry.Level == zapcore.ErrorLevel && (c.log.muted.Load() || harmless[entry.Message]) {
		return nil
	}
	values := zapcore.NewMapObjectEncoder()
	for _, field := range append(c.fields[:len(c.fields):len(c.fields)], fields...) {
		field.AddTo(values)
	}
	attrs := make([]slog.Attr, 0, len(values.Fields))
	for key, value := range values.Fields {
		attrs = append(attrs, slog.Any(key, value))
	}
	c.log.to.LogAttrs(context.Background(), slog.LevelError, "etcd: "+entry.Message, attrs...)
	return nil
}

func (c logCore) Sync() error { return nil }
