package main

import (
	"fmt"
	"strings"

	"github.com/firn-id/firn/internal/service/codes"
)

const errorsHead = `# Errors

` + remake + `
Every protocol has the same codes: in the body over HTTP (` + "`error.code`" + `), as the ` + "`reason`" + ` of a
` + "`google.rpc.ErrorInfo`" + ` with the domain ` + "`firn`" + ` over gRPC, and as the first word of an error to Redis
clients. A message beside the code says what was given and what would be right. Where a retry may
help, the answer says when: ` + "`Retry-After`" + ` in seconds, or a ` + "`google.rpc.RetryInfo`" + `.

| code | HTTP | gRPC | Redis | when |
|---|---|---|---|---|
`

func errorsPage() string {
	var page strings.Builder
	page.WriteString(errorsHead)
	for _, c := range codes.All() {
		fmt.Fprintf(&page, "| `%s` | %d | `%s` | `%s` | %s |\n", c, c.HTTP(), c.GRPC(), c.Redis(), c.When())
	}
	return page.String() + `
Redis clients also get ` + "`ERR`" + ` for anything that is not a command, ` + "`WRONGPASS`" + ` for an unknown
token, and ` + "`NOPROTO`" + ` for an unsupported protocol version.
`
}
