package profiles

import (
	"testing"

	"github.com/toolward/toolward/shell"
)

func TestContainers(t *testing.T) {
	testKinds(t, map[string][]string{
		"": {
			"docker ps", "docker ps -a --format json", "docker ps -aq -n 5 --filter name=x", "docker images -q", "docker image ls --no-trunc", "docker logs -f --tail 100 web",
			"docker logs --since=5m web", "docker inspect -f {{.State}} web", "docker version", "docker info", "docker --version", "docker stats --no-stream", "docker top web",
			"docker port web", "docker history x", "docker volume ls", "docker network inspect bridge", "docker system df -v", "docker container ls", "docker context ls", "podman ps -a",
			"helm version --short", "kubectl config current-context", "kubectl config view --minify", "terraform version", "kubectl -h", "docker diff web", "docker -l debug ps",
		},
		"reads":                        {"docker compose ps", "docker compose logs -f --tail=50 web", "docker compose config -q", "docker-compose ps", "docker-compose logs web", "helm lint chart"},
		"network":                      {"docker pull alpine:3", "docker search x", "kubectl get pods -A", "kubectl get pods -n x -o wide -w", "kubectl -n kube-system get pod x -oyaml", "kubectl get -l app=x deploy,svc", "kubectl describe pod x", "kubectl logs -f deploy/x -c y --tail=10", "kubectl logs x y --previous", "kubectl top pods", "kubectl explain pod.spec", "kubectl version --client", "kubectl rollout status deploy/x", "kubectl auth can-i get pods", "kubectl --context=dev get ns", "kubectl get pods --namespace x", "kubectl wait --for=condition=Ready pod/x --timeout=60s", "helm list -A", "helm status x -n y", "helm search repo nginx", "helm get notes x", "helm history x -n y"},
		"enters network project reads": {"docker build .", "docker build -t x:1 -f Dockerfile.dev --build-arg A=b --no-cache .", "docker buildx build --platform linux/amd64 --load -t x .", "podman build -q -t x ."},
		"network project reads":        {"terraform plan", "terraform plan -var x=y -target=z -input=false", "tofu plan -no-color", "terraform state list"},
		"network reads":                {"helm template chart --set a=b", "helm template r chart -f v.yaml", "terraform output"},
		"environment network reads":    {"terraform output -json", "terraform output -raw x"},
		"network project reads writes": {"terraform init -upgrade", "terraform plan -out=plan.bin", "terraform init -backend=false"},
		"project reads":                {"terraform validate", "tofu validate -json"},
		"reads writes":                 {"terraform fmt", "terraform fmt -recursive -check"},
		"writes":                       {"docker save -o x.tar alpine"},
		"destroys":                     {"docker rm -f x", "docker rmi x", "docker system prune -af --volumes", "docker volume rm x", "podman rm x"},
		"destroys network":             {"kubectl delete pod x", "kubectl drain n --ignore-daemonsets"},
		"config":                       {"docker login -u x r", "kubectl config use-context x", "kubectl config set-credentials x"},
		"environment network":          {"kubectl get secrets", "kubectl get secret x -o yaml", "kubectl get pods,secrets", "kubectl describe secret/x", "helm get values x", "kubectl get Secrets.v1 x"},
		"environment":                  {"helm env", "docker inspect web", "docker history --no-trunc x", "docker inspect -f {{.Config.Env}} x", "systemctl show web"},
	})
	testAsks(t, shell.Unknown,
		"docker -H tcp://x ps", "docker -Htcp://x ps", "docker --host=tcp://x ps", "docker --context x ps", "docker -c x ps", "docker --config d ps", "docker --tls ps", "podman --url x ps", "podman --connection x ps",
		"docker run alpine", "docker run -v /:/h alpine", "docker exec web sh", "docker cp a b:c", "docker compose up -d", "docker compose run x", "docker compose exec x sh", "docker compose down", "docker compose build", "docker-compose up",
		"docker start x", "docker stop x", "docker push x", "docker create x", "docker attach x", "docker commit x", "docker load", "docker import x", "docker plugin install x", "docker swarm init", "docker stack deploy x", "docker context use x", "docker context create x",
		"docker build --ssh default .", "docker build --secret id=x,src=y .", "docker build --allow security.insecure .", "docker build --network host .", "docker build --build-context a=b .", "docker build -o out .", "docker build --push .", "docker build https://github.com/a/b.git", "docker build git@github.com:a/b", "docker build github.com/a/b", "docker build --output=x .", "docker ps --frob",
		"docker buildx bake", "docker --frob", "docker builder", "docker compose --env-file x ps", "docker compose -f x up", "docker-compose -H x ps", "docker-compose --project-directory x ps",
		"kubectl apply -f x", "kubectl exec x -- id", "kubectl create -f x", "kubectl edit x", "kubectl patch x", "kubectl cp a b:c", "kubectl run x", "kubectl port-forward x 1", "kubectl proxy", "kubectl scale x", "kubectl attach x", "kubectl debug x", "kubectl krew", "kubectl diff -f x", "kubectl plugin list",
		"kubectl --kubeconfig x get pods", "kubectl get pods --kubeconfig=x", "kubectl -s h get pods", "kubectl --server=h get pods", "kubectl get pods --token=t", "kubectl get pods --as x", "kubectl get -f x", "kubectl get -k x", "kubectl get --raw /x", "kubectl get pods -o go-template-file=x", "kubectl get pods -ojsonpath-file=x", "kubectl get pods --insecure-skip-tls-verify", "kubectl get pods --cache-dir x",
		"helm install x y", "helm upgrade x y", "helm uninstall x", "helm repo add a b", "helm plugin install x", "helm template x --post-renderer ./y", "helm --kubeconfig x list", "helm list --kube-apiserver h", "helm push x y", "helm rollback x",
		"terraform import a b", "terraform console", "terraform taint x", "terraform init -plugin-dir=x", "terraform init -from-module=x", "terraform workspace new x", "terraform state rm x", "terraform plan -state=x", "terraform login", "terraform --frob", "terraform force-unlock x",
		"aws s3 ls", "gcloud info", "az login", "aws --version",
	)
	testAsks(t, shell.Destroys, "terraform apply", "terraform apply -auto-approve", "terraform destroy", "tofu apply plan", "terraform init -force-copy")
	testAsks(t, shell.Environment, "kubectl config view --raw")
	testPlaces(t, [][2]string{
		{"terraform -chdir=infra plan -var-file=../x", "enters infra (-chdir); reads ../x (-var-file); network; reads .; project"},
		{"docker build -f ../D /src", "reads ../D (-f); reads /src; project; network; enters /src; enters ../D (-f)"},
		{"helm template c -f /v --output-dir /o", "reads /v (-f); writes /o (--output-dir); reads c; reads .; network"},
	})
}

func TestGh(t *testing.T) {
	testKinds(t, map[string][]string{
		"": {"gh --version", "gh version", "gh help pr", "gh alias list", "gh config get editor", "gh extension list"},
		"network": {
			"gh pr list", "gh pr list -L 5 --state all --json number,title -q .[0]", "gh pr view 5 --comments", "gh pr view", "gh pr diff 5", "gh pr checks --watch", "gh pr status", "gh issue list -l bug -R a/b",
			"gh issue view 3 -c", "gh repo view a/b", "gh repo list a -L 5", "gh run list -w ci.yml", "gh run view 5 --log-failed", "gh run watch 5", "gh workflow list", "gh release list", "gh release view v1", "gh search issues x --repo a/b",
			"gh api repos/a/b", "gh api user -q .login", "gh api -X GET x", "gh api --method=get x --paginate", "gh auth status", "gh status", "gh secret list", "glab mr list", "glab issue view 4",
		},
		"network writes":         {"gh repo clone a/b", "gh run download 5 -D out", "gh release download v1 -p x"},
		"network project writes": {"gh pr checkout 5"},
		"config":                 {"gh alias set x !id", "gh alias set --shell x id", "gh alias import f", "gh config set editor x", "gh extension install a/b", "gh auth login", "gh auth setup-git"},
		"environment":            {"gh auth token"},
	})
	testAsks(t, shell.Unknown,
		"gh pr create", "gh pr merge 5", "gh pr comment 5 -b x", "gh issue create -t x", "gh repo delete a/b", "gh repo create x", "gh release create v1", "gh secret set X", "gh workflow run x", "gh run rerun 5", "gh gist create x", "gh browse", "gh codespace ssh", "gh ssh-key add k", "gh x",
		"gh api x -f a=b", "gh api x -F a=@f", "gh api -X POST x", "gh api -XDELETE x", "gh api --method PATCH x", "gh api --input f x", "gh api --hostname h x", "gh api -H a:b x", "gh api https://h/x", "gh pr view --web", "gh pr list -w", "gh repo clone a/b d -- -u id", "gh repo clone a/b -- --upload-pack=id", "gh pr list --frob", "gh pr view a b",
		"glab mr create", "glab mr merge 5", "glab x", "hub pr",
	)
	testAsks(t, shell.Environment, "gh auth status -t", "gh auth status --show-token")
}
