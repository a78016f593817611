package etcdserver

import (
	"context"
	"log/slog"
	"sync/atomic"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// etcdLog passes on the server's errors, and nothing else, until it is muted. It is
// safe for concurrent use.
type etcdLog struct {
	dir   string // the server's data directory
	to    *slog.Logger
	muted atomic.Bool
	died  chan *DataError // holds the first reason why the server can't go on
}

func newEtcdLog(dir string, to *slog.Logger) *etcdLog {
	return &etcdLog{dir: dir, to: to, died: make(chan *DataError, 1)}
}

func (l *etcdLog) zap() *zap.Logger {
	return zap.New(logCore{log: l}, zap.WithFatalHook(l), zap.WithPanicHook(l))
}

// OnWrite receives the reason why the server can't go on. Without it zap would end the
// process, or panic.
//
// It never returns, so that this goroutine does nothing more: the server does not
// confirm what it has not written.
func (l *etcdLog) OnWrite(entry *zapcore.CheckedEntry, fields []zapcore.Field) {
	var cause error
	for _, field := range fields {
		if err, ok := field.Interface.(error); ok {
			cause = err
		}
	}
	select {
	case l.died <- dataError(l.dir, "etcd can't go on: "+entry.Message, cause):
	default:
	}
	select {}
}

func (l *etcdLog) error(message string, err error) {
	if err != nil && !l.muted.Load() {
		l.to.Error(message, "err", err)
	}
}

// harmless are errors of a healthy server, and such that it returns as well.
var harmless = map[string]bool{
	// can't be read before the first write; logged every few seconds
	"failed to update storage version":                true,
	"bootstrap failed":                                true, // returned
	"rejecting promote learner: learner is not ready": true, // returned
}

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
	// OnWrite has the graver ones
	if entry.Level > zapcore.ErrorLevel || c.log.muted.Load() || harmless[entry.Message] {
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
