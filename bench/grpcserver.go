package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/firn-id/firn/api/firnv1"
	"github.com/firn-id/firn/cluster"
	"github.com/firn-id/firn/internal/server"
	"github.com/firn-id/firn/internal/server/auth"
	"github.com/firn-id/firn/internal/server/grpcapi"
	"github.com/firn-id/firn/member"
	"github.com/firn-id/firn/store/memstore"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// rpcServerVariable has this program be the server that it names, for another run of it that measures.
const rpcServerVariable = "FIRN_BENCH_GRPC_SERVER"

// rpcServer is a gRPC server in a process of its own, so that its CPU time is known apart.
type rpcServer struct {
	process *exec.Cmd
	ask     io.WriteCloser
	answers *bufio.Scanner
	conn    *grpc.ClientConn
	client  firnv1.FirnClient
}

func startRPC(ctx context.Context, name string) (*rpcServer, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	s := &rpcServer{process: exec.CommandContext(ctx, self)}
	s.process.Env = append(os.Environ(), rpcServerVariable+"="+name)
	s.process.Stderr = os.Stderr
	if s.ask, err = s.process.StdinPipe(); err != nil {
		return nil, err
	}
	answers, err := s.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s.answers = bufio.NewScanner(answers)
	if err := s.process.Start(); err != nil {
		return nil, err
	}
	if !s.answers.Scan() {
		s.stop()
		return nil, fmt.Errorf("the server %s does not say where it listens", name)
	}
	if s.conn, err = grpc.NewClient("passthrough:///"+s.answers.Text(), grpc.WithTransportCredentials(insecure.NewCredentials())); err != nil {
		s.stop()
		return nil, err
	}
	s.client = firnv1.NewFirnClient(s.conn)
	return s, nil
}

// cpu is the CPU time that the server has used since it began, user and system.
func (s *rpcServer) cpu() (time.Duration, error) {
	if _, err := io.WriteString(s.ask, "\n"); err != nil {
		return 0, err
	}
	if !s.answers.Scan() {
		return 0, errors.New("the server has ended")
	}
	ns, err := strconv.ParseInt(s.answers.Text(), 10, 64)
	return time.Duration(ns), err
}

func (s *rpcServer) stop() {
	if s.conn != nil {
		_ = s.conn.Close()
	}
	_ = s.ask.Close()
	_ = s.process.Wait()
}

// beRPCServer serves until its input ends: it says where, and for every line what CPU time it has used.
func beRPCServer(name string, in io.Reader, out io.Writer) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	switch name {
	case firnServer:
		m, err := member.Join(context.Background(), memstore.NewService().Client("bench"), member.Options{})
		if err != nil {
			return err
		}
		defer m.Leave()
		q, err := m.EnsureSequencer(context.Background(), member.DefaultSequencer, cluster.Define(wide))
		if err != nil {
			return err
		}
		s := grpcapi.New(server.New(q, m, server.Options{}), &auth.Policy{})
		defer func() { _ = s.Shutdown(context.Background()) }() // nobody is there by then
		go func() { _ = s.Serve(l) }()
	case constantServer:
		s := grpc.NewServer()
		defer s.Stop()
		firnv1.RegisterFirnServer(s, newConstant())
		go func() { _ = s.Serve(l) }()
	default:
		return fmt.Errorf("there is no server %q; there are %s", name, strings.Join([]string{firnServer, constantServer}, " and "))
	}
	fmt.Fprintln(out, l.Addr())
	for lines := bufio.NewScanner(in); lines.Scan(); {
		fmt.Fprintln(out, cpuTime().Nanoseconds())
	}
	return nil
}

// constant gives the same IDs again and again.
type constant struct {
	firnv1.UnimplementedFirnServer
	ids []int64
}

func newConstant() *constant {
	c := &constant{ids: make([]int64, batchOf)}
	for i := range c.ids {
		c.ids[i] = 1<<60 + int64(i)
	}
	return c
}

func (c *constant) Next(context.Context, *firnv1.NextRequest) (*firnv1.NextResponse, error) {
	return &firnv1.NextResponse{Id: c.ids[0]}, nil
}

func (c *constant) NextBatch(context.Context, *firnv1.NextBatchRequest) (*firnv1.NextBatchResponse, error) {
	return &firnv1.NextBatchResponse{Ids: c.ids}, nil
}

func (c *constant) Stream(_ *firnv1.StreamRequest, to grpc.ServerStreamingServer[firnv1.StreamResponse]) error {
	for {
		if err := to.Send(&firnv1.StreamResponse{Ids: c.ids}); err != nil {
			return err
		}
	}
}
