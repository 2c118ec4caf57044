package shell

// checks look closer at what options and roles cannot say. They add effects; they never take one away.
var checks = map[string]func(*arguments){
	"find":          checkFind,
	"go-packages":   checkGoPackages,
	"go-formatted":  checkGoFormatted,
	"go-get":        checkGoGet,
	"go-cover":      checkGoCover,
	"go-tool-flags": checkGoToolFlags,
	"golangci-fix":  checkGolangciFix,
}
