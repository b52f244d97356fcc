// A TLS 1.3 client and server of Go's crypto/tls, for `cargo xtask interop`.
//
//	peer server PORT CHAIN KEY ROOT [client-certificate]
//	peer client PORT ROOT COUNT [CHAIN KEY]
//
// The server answers each request by one line. The client connects COUNT times, prints the answer, and says
// whether the last connection was resumed.
package main

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"strconv"
	"time"
)

const answer = "HTTP/1.0 200 OK\r\n\r\n<html>Go</html>\n"

func main() {
	log.SetFlags(0)
	if os.Args[1] == "server" {
		serve(os.Args[2], os.Args[3], os.Args[4], os.Args[5], len(os.Args) > 6)
	} else {
		count, err := strconv.Atoi(os.Args[4])
		check(err)
		connect(os.Args[2], os.Args[3], count, os.Args[5:])
	}
}

func serve(port, chain, key, root string, wantsCertificate bool) {
	certificate, err := tls.LoadX509KeyPair(chain, key)
	check(err)
	config := &tls.Config{
		Certificates: []tls.Certificate{certificate},
		ClientCAs:    pool(root),
		MinVersion:   tls.VersionTLS13,
	}
	if wantsCertificate {
		config.ClientAuth = tls.RequireAndVerifyClientCert
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:"+port, config)
	check(err)
	for {
		connection, err := listener.Accept()
		check(err)
		go reply(connection)
	}
}

func reply(connection net.Conn) {
	defer connection.Close()
	connection.SetDeadline(time.Now().Add(10 * time.Second))
	reader := bufio.NewReader(connection)
	for {
		line, err := reader.ReadString('\n')
		if err != nil {
			return
		}
		if line == "\r\n" {
			io.WriteString(connection, answer)
			return
		}
	}
}

func connect(port, root string, count int, own []string) {
	config := &tls.Config{
		RootCAs:            pool(root),
		ServerName:         "device.test",
		MinVersion:         tls.VersionTLS13,
		ClientSessionCache: tls.NewLRUClientSessionCache(1),
	}
	if len(own) == 2 {
		certificate, err := tls.LoadX509KeyPair(own[0], own[1])
		check(err)
		config.Certificates = []tls.Certificate{certificate}
	}
	for ; count > 0; count-- {
		connection, err := tls.Dial("tcp", "127.0.0.1:"+port, config)
		check(err)
		connection.SetDeadline(time.Now().Add(10 * time.Second))
		_, err = io.WriteString(connection, "GET / HTTP/1.0\r\n\r\n")
		check(err)
		_, err = io.Copy(os.Stdout, connection)
		check(err)
		fmt.Println("resumed", connection.ConnectionState().DidResume)
		connection.Close()
	}
}

func pool(path string) *x509.CertPool {
	pem, err := os.ReadFile(path)
	check(err)
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		log.Fatal("no certificate in ", path)
	}
	return pool
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
