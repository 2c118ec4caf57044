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

	"git-checkout":      checkGitCheckout,
	"git-clean":         checkGitClean,
	"git-clone":         checkGitClone,
	"git-config":        checkGitConfig,
	"git-fetch":         checkGitFetch,
	"git-push":          checkGitPush,
	"git-restore":       checkGitRestore,
	"git-settings":      checkGitSettings,
	"git-strategy":      checkGitStrategy,
	"node":              checkNode,
	"npm-packages":      checkNpmPackages,
	"npm-run":           checkNpmRun,
	"script-name":       checkScriptName,
	"yarn-workspace":    checkYarnWorkspace,
	"yarn-foreach":      checkYarnForeach,
	"no-response-files": checkNoResponseFiles,
	"eslint-format":     checkEslintFormat,
	"jest":              checkJest,
	"rollup-config":     checkRollupConfig,
}
