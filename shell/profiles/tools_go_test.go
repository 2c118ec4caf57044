package profiles

import "testing"

func TestGo(t *testing.T) {
	testHarmless(t, `
		go build
		go build ./...
		go build -v -race -tags=integration,e2e ./cmd/app
		go build -o bin/app -trimpath -ldflags "-s -w -X main.version=1.2.3" ./cmd/app
		go build -ldflags="-X 'main.date=2026-01-02 10:00' -linkmode external -extldflags -static" .
		go build -gcflags=all='-N -l' ./...
		go build -gcflags -m=2 ./parser
		go test ./...
		go test -v -run '^TestParse$/empty' -count=1 -race -timeout 30s ./parser
		go test -bench=. -benchmem -cpuprofile cpu.out -memprofile=mem.out ./codec
		go test -coverprofile=cover.out -covermode atomic -coverpkg=./... ./...
		go test ./... -short -failfast
		go test -c -o bin/parser.test ./parser
		go test -fuzz=FuzzRead -fuzztime=10s ./parser
		go test ./cmd -args -update -toolexec id
		go vet ./...
		go vet -copylocks=false ./internal/...
		go run .
		go run ./cmd/server -addr :8080 -exec x
		go run main.go helper.go --flag
		go run -race ./cmd/server
		go mod tidy
		go mod tidy -v -go=1.24
		go mod download
		go mod verify
		go mod graph
		go mod why -m golang.org/x/text
		go mod edit -require golang.org/x/text@v0.14.0
		go mod vendor
		go mod init example.com/tool
		go work init ./a ./b
		go work use ./c
		go work sync
		go list ./...
		go list -m -u all
		go list -f '{{.Dir}}' -deps ./cmd/app
		go list -json -m all
		go get -u ./...
		go generate ./...
		go fmt ./...
		go fix ./...
		go env
		go env GOPATH GOMODCACHE
		go version
		go version -m bin/app
		go doc net/http.Client
		go doc -all ./parser
		go help build
		go clean -testcache
		go tool cover -func=cover.out
		go tool cover -html=cover.out -o cover.html
		go tool nm -size bin/app
		gofmt -l .
		gofmt -d -s main.go
		gofmt -w cmd internal
		gofmt -r 'a[b:len(a)] -> a[b:]' -w x.go
		goimports -w -local example.com main.go
		gofumpt -l -w .
		golangci-lint run
		golangci-lint run ./... --timeout=5m
		golangci-lint run --fix -E gosec ./internal/...
		golangci-lint fmt
		golangci-lint linters
		staticcheck ./...
		staticcheck -checks all,-ST1000 ./...
		govulncheck ./...
		govulncheck -mode=binary bin/app
		gopls check main.go
		gopls version`)
	testAsking(t, `
		go build -toolexec id ./...
		go build -toolexec='sh -c id' .
		go build --toolexec=id
		go test -toolexec=id
		go test -exec id ./...
		go test -exec='xprog -q' .
		go run -exec id .
		go vet -vettool=./x ./...
		go vet -vettool ./x
		go fix -fixtool=./x .
		go build -overlay o.json
		go build -overlay=o.json
		go build -modfile=/tmp/go.mod
		go build -modfile ../other/go.mod ./...
		go build -C /tmp/other
		go test -C=../other ./...
		go build -pkgdir /tmp/p
		go build -ldflags=-extld=/tmp/cc
		go build -ldflags '-linkmode=external -extld /tmp/cc' .
		go build -ldflags="-extldflags=-fuse-ld=/tmp/x"
		go build -ldflags="-extldflags '-Wl,-plugin,/tmp/x.so'"
		go build -ldflags=main=-extld=/tmp/cc
		go build -ldflags="-X 'main.a=b"
		go build -gccgoflags=-fplugin=x
		go build -gcflags=-o=/tmp/x
		go build -gcflags='-embedcfg /etc/passwd'
		go build -gcflags=all=-d=ssa/x/dump=y
		go build -o /usr/local/bin/app
		go build -o=../../app
		go build -o /home/dev/.bashrc ./x
		go test -coverprofile=/home/dev/.bashrc ./...
		go test -outputdir /tmp -cpuprofile x
		go test -c -o /tmp/x .
		go run example.com/tool@latest
		go run example.com/tool@v1.2.3 --help
		go run /tmp/evil.go
		go run main.go /tmp/evil.go
		go run ../other
		go test /tmp/evil/...
		go install example.com/tool@latest
		go install ./cmd/app
		go get toolchain@go1.99
		go get go@1.99
		go env -w GOFLAGS=-toolexec=id
		go env -u GOPROXY
		go generate -toolexec id
		go mod vendor -o /tmp/x
		go fmt strings
		go fmt /tmp/x
		go tool cover -html=cover.out
		go tool compile x.go
		go tool pprof -http=:0 cpu.out
		go doc -http
		go bug
		go telemetry on
		go build -nosuch
		go nosuch
		gofmt -w /etc/x
		gofmt -cpuprofile=/tmp/x .
		gofmt -nosuch .
		golangci-lint run -c /tmp/x.yml
		golangci-lint run --config=/tmp/x.yml
		golangci-lint custom
		golangci-lint run /tmp/x
		govulncheck -db=file:///tmp/x ./...
		govulncheck -C /tmp .
		staticcheck -debug.cpuprofile=/tmp/x`)
	testExact(t, `
		go build -o bin/app ./cmd/app → writes bin/app (-o); project; enters ./cmd/app
		go build -C sub -o bin/app → enters sub (-C); writes bin/app (-o); project
		go run x@v1 → project; network (x@v1); unknown (x@v1)
		go fmt ./a/... → writes ./a
		go build -toolexec 'id -u' → evaluates id -u (-toolexec); project`)
}
