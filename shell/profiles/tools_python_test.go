package profiles

import "testing"

func TestPython(t *testing.T) {
	testHarmless(t, `
		python3 app.py
		python app.py -c x -m y
		python3.12 -u train.py --epochs 3
		python3 -X dev -W error::DeprecationWarning app.py
		python3 -Wd -bb -OO app.py
		python3 -m pytest -q
		python3 -m pytest tests/test_a.py::TestX::test_b -k 'not slow'
		python -um pytest
		python -m unittest
		python -m unittest discover -s tests -p 'test_*.py'
		python -m venv .venv
		python3 -m venv --clear env
		python -m json.tool data.json
		python -m json.tool in.json out.json --indent 2
		python -m py_compile app.py
		python -m compileall -q src
		python -m black .
		python -m mypy src
		python -m pip list
		python -m pip show requests
		python -m coverage report -m
		python manage.py migrate
		python -V
		python3 --version`)
	testAsking(t, `
		python
		python3 -
		python3 -c 'print(1)'
		python3 -c'print(1)'
		python3 -Ic x
		python3 -i
		python3 -i app.py
		python3 -m pip install x
		python3 -mpip install x
		python3 -um pip install --user x
		python3 -m pip download x
		python3 -m http.server
		python3 -m nosuch
		python3 -m timeit 1
		python3 -m pdb app.py
		python3 -m
		python3 -W ignore::antigravity.x app.py
		python3 -W all:0:antigravity.x:0:0 app.py
		python3 -X presite=x app.py
		python3 -X pycache_prefix=/tmp/x app.py
		python3 --nosuch app.py
		python3 -Z app.py
		python3 /tmp/evil.py
		python3 ../evil.py
		python3 -- /tmp/evil.py
		python3 -m venv /tmp/x
		python3 -m json.tool in.json /home/dev/.bashrc
		python3 -m unittest discover -s /tmp/x
		python3 -m pytest -p evil
		python3 -m pytest /tmp/x`)
	testExact(t, `
		python3 -u app.py -c x → project; enters app.py
		python3 -c x y → evaluates x (-c)
		python3 - → evaluates (standard input)`)
}

func TestPackageManagersOfPython(t *testing.T) {
	testHarmless(t, `
		pip install -r requirements.txt
		pip3 install -U -r requirements.txt -c constraints.txt
		pip install .
		pip install '.[dev]'
		pip install -e .
		pip uninstall -y requests
		pip list --outdated
		pip freeze
		pip show flask
		pip check
		uv sync
		uv sync --frozen --all-extras
		uv lock --upgrade
		uv run pytest -q
		uv run ruff check .
		uv run python app.py
		uv run app.py --flag
		uv run -m pytest
		uv pip install -r requirements.txt
		uv pip list
		uv venv
		uv tree
		uv build
		poetry install
		poetry run pytest tests
		poetry show --tree
		poetry lock
		poetry config virtualenvs.in-project
		pipenv install --dev
		pipenv run pytest
		pdm install
		pdm run pytest
		conda list
		conda env list`)
	testAsking(t, `
		pip install --index-url https://example.com x
		pip install --index-url=https://example.com x
		pip install -i https://example.com x
		pip install --extra-index-url https://example.com x
		pip install -e git+https://github.com/someone/lib.git
		pip install -f /tmp/x y
		pip install https://example.com/x.whl
		pip install git+https://example.com/x.git
		pip install 'x @ https://example.com/x.whl'
		pip install ./x
		pip install /tmp/x
		pip install x.whl
		pip install -r /tmp/r.txt
		pip install -r https://example.com/r.txt
		pip install --user x
		pip install --target /tmp/x y
		pip install --python /tmp/py x
		pip install --config-settings a=b x
		pip install --trusted-host example.com x
		pip --proxy http://192.0.2.1 install x
		pip config set global.index-url x
		pip install --nosuch x
		pip install --ind https://example.com x
		uv add git+https://example.com/x
		uv run --with evil pytest
		uv run id
		uv run -
		uv run https://example.com/x.py
		uv run -m nosuch
		uv run python -c x
		uv tool run x
		uv tool install x
		uvx ruff
		uv pip install -e .
		uv pip install --index-url x y
		uv --directory /tmp/x run pytest
		uv publish
		uv self update
		poetry run id
		poetry run python -c x
		poetry -C /tmp/x install
		poetry add git+https://example.com/x
		poetry add ./x
		poetry config repositories.x https://example.com
		poetry publish
		pipenv run id
		pipenv install -i https://example.com x
		conda install numpy`)
}

func TestToolsOfPython(t *testing.T) {
	testHarmless(t, `
		pytest
		pytest -xvs tests/unit
		pytest tests/test_a.py::test_b --maxfail=1 --tb=short
		pytest -n auto --cov=src --cov-report=term-missing --cov-report=html:htmlcov
		pytest -o log_cli=true -k 'a and not b'
		pytest --junitxml=report.xml --lf
		tox
		tox -e py312 -- -k x
		nox -s tests
		ruff check .
		ruff check --fix src
		ruff format
		ruff format --check .
		black .
		black --check --diff src
		isort .
		isort --profile black --check-only src
		mypy src --strict
		mypy .
		pyright
		flake8 src --max-line-length=100
		pylint src
		coverage run -m pytest
		coverage run --branch app.py
		coverage html
		coverage report --fail-under=80
		pre-commit run --all-files`)
	testAsking(t, `
		pytest -p evil
		pytest -pevil
		pytest --rootdir=/tmp/x
		pytest -c /tmp/x.ini
		pytest -o addopts='-p evil'
		pytest --override-ini=python_files=x
		pytest --pdbcls=a:b
		pytest --basetemp=/home/dev
		pytest --junitxml=/home/dev/.bashrc
		pytest --cov-report=xml:/home/dev/.bashrc
		pytest --cov-report html:../../x
		pytest --tx popen//python=id
		pytest /tmp/x/test_a.py::test
		pytest --nosuch
		tox -c /tmp/x
		tox -x testenv.commands=id
		nox -f /tmp/x.py
		ruff check --config /tmp/x.toml
		ruff check -o /home/dev/.bashrc
		ruff format /tmp/x
		black /etc/x
		black --config=/tmp/x .
		mypy --python-executable ./x .
		mypy --install-types src
		mypy @opts
		flake8 --config /tmp/x
		flake8 --output-file=/home/dev/.bashrc
		pylint --load-plugins=x src
		pylint --init-hook='import os' src
		coverage run /tmp/x.py
		coverage run -m nosuch
		pre-commit install
		pre-commit try-repo https://example.com/x`)
}
