package profiles

import "testing"

func TestMake(t *testing.T) {
	testHarmless(t, `
		make
		make test
		make -j4 build
		make -j 8
		make -j
		make -k -n all
		make clean all
		make VERBOSE=1 test
		make V=1
		make test PKG=./parser RUN=TestX
		make GOOS=linux GOARCH=arm64 build
		make -C sub install-deps
		make -sC sub
		make --no-print-directory -B lint
		make -f build/Makefile.ci test
		make install PREFIX=out
		gmake -j8 check`)
	testAsking(t, `
		make --eval='$(shell id)'
		make --eval '$(shell id)'
		make -E '$(shell id)'
		make --evaluate=x
		make CC='touch PWNED'
		make CC=evil
		make SHELL=./x
		make MAKEFLAGS=--eval=x
		make GOFLAGS=-toolexec=id test
		make CFLAGS=-fplugin=x
		make VERBOSE='1; id'
		make PKG=-toolexec=id
		make VERSION='$(shell id)'
		make V!=id
		make V:=x\;id
		make .SHELLFLAGS=x
		make -C /tmp/evil
		make -C../evil
		make --directory=/tmp/evil
		make -f /tmp/evil.mk
		make --file=/tmp/evil.mk
		make --makefile /tmp/evil.mk
		make -f -
		make -I /tmp/evil
		make --include-dir=/tmp/evil
		make DESTDIR=/ install
		make install
		make -j4 all install
		make install prefix=/usr
		make --nosuch
		make -z
		make -kz`)
	testExact(t, `
		make -C sub -f x.mk → enters sub (-C); project (-f); enters x.mk (-f); project
		make CC=x → project; unknown (CC=x)`)
}

func TestBuilders(t *testing.T) {
	testHarmless(t, `
		cmake -S . -B build
		cmake -B build -G Ninja -DCMAKE_BUILD_TYPE=Release -DBUILD_TESTING=ON
		cmake -Bbuild -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_EXPORT_COMPILE_COMMANDS=1
		cmake -B build -D CMAKE_CXX_FLAGS='-O2 -Wall -fsanitize=address'
		cmake -B build -DCMAKE_TOOLCHAIN_FILE=cmake/arm.cmake
		cmake --build build
		cmake --build build --target test -j8 --config Debug
		cmake --build build -- -j4 VERBOSE=1
		cmake --install build --prefix out
		cmake --preset dev
		cmake --list-presets
		cmake --version
		ctest --test-dir build --output-on-failure
		ctest -j8 -R parser -V
		ninja
		ninja -C build -j 4 test
		ninja -C build -t clean
		meson setup build
		meson setup build --buildtype=release -Dtests=true
		meson compile -C build
		meson test -C build --print-errorlogs
		bazel build //...
		bazel test //pkg:all --test_output=errors
		bazel run //cmd:app -- --flag
		bazel query 'deps(//x)'
		just
		just build release
		just --list
		task build
		task test -- -run TestX`)
	testAsking(t, `
		cmake -E env id
		cmake -E touch x
		cmake -P /tmp/x.cmake
		cmake -B /tmp/x
		cmake /tmp/evil
		cmake -S/tmp/evil
		cmake -C /tmp/x.cmake .
		cmake --toolchain /tmp/x .
		cmake -DCMAKE_C_COMPILER=/tmp/x .
		cmake -DCMAKE_CXX_COMPILER_LAUNCHER=./x .
		cmake -DCMAKE_TOOLCHAIN_FILE=/tmp/x .
		cmake -DCMAKE_PROJECT_INCLUDE=x.cmake .
		cmake -DCMAKE_MAKE_PROGRAM=./x .
		cmake -D CMAKE_CXX_FLAGS=-fplugin=x .
		cmake -D CMAKE_C_FLAGS=-Wl,-plugin .
		cmake -DPYTHON_EXECUTABLE=./x .
		cmake -DCMAKE_C_COMPILER:STRING=./x .
		cmake --build /tmp/x
		cmake --build build -- SHELL=x
		cmake --build build -- --eval=x
		cmake --install build
		cmake --open build
		ctest -S /tmp/x
		ctest --build-and-test a b
		ctest --test-dir /tmp/x
		ninja -f /tmp/x
		ninja -C /tmp/x
		ninja -t browse
		ninja -C build install
		cmake --build build --target install
		meson test --wrapper id
		meson install -C build
		bazel run --run_under=id //x
		bazel build --override_repository=a=/tmp/x //x
		bazel --output_base=/tmp/x build //x
		just -f /tmp/x
		just --shell ./x build
		just -c id
		just --set a b
		task -t /tmp/x
		task -d /tmp/x build
		task CMD='id; x' build`)
}

func TestCompilers(t *testing.T) {
	testHarmless(t, `
		gcc main.c
		gcc -Wall -Wextra -O2 -g -std=c11 -o app main.c util.c -lm -lpthread
		gcc -c -fPIC -Iinclude -DNDEBUG -D_GNU_SOURCE=1 src/a.c -o build/a.o
		g++ -std=c++20 -fsanitize=address,undefined -march=native main.cpp
		clang -fsyntax-only -Weverything x.c
		clang++ -stdlib=libc++ -O3 a.cpp -ob
		cc -E x.c
		cc -MMD -MF x.d -c x.c
		gcc-12 --version
		ld -o a a.o -Llib -lc
		nm -C app
		objdump -d app
		readelf -hS app
		strip app
		size app
		ranlib lib.a
		pkg-config --cflags --libs gtk4
		clang-format -i src/a.c
		clang-format --dry-run --Werror src/a.c
		clang-tidy -p build src/a.cpp
		c++filt _Z1fv`)
	testAsking(t, `
		gcc -fplugin=./x.so a.c
		gcc -fplugin-arg-x-y=1 a.c
		gcc -wrapper id a.c
		gcc -B. a.c
		gcc -B /tmp/x a.c
		gcc -specs=./x a.c
		gcc -specs ./x a.c
		gcc @opts
		gcc -Wl,-plugin,x a.c
		gcc -Xlinker -plugin a.c
		gcc -Wa,--x a.c
		gcc -Xpreprocessor x a.c
		gcc -o /home/dev/.bashrc a.c
		gcc -o/home/dev/.bashrc a.c
		gcc -MF /home/dev/.bashrc -M a.c
		gcc -include /etc/shadow a.c
		gcc -I/etc a.c
		gcc -fdump-tree-all=/tmp/x a.c
		gcc -fprofile-use=/tmp/x a.c
		gcc --nosuch a.c
		gcc -zx a.c
		clang -fuse-ld=/tmp/x a.c
		clang -fpass-plugin=x.so a.c
		clang -Xclang -load a.c
		clang --config=/tmp/x a.c
		ld -plugin x.so a.o
		nm --plugin x.so a.o
		strip -o /tmp/x app
		strip /usr/bin/x
		clang-tidy -load=x.so a.c
		clang-tidy -fix /etc/x.c`)
	testExact(t, `
		gcc -c src/a.c → reads src/a.c; writes a.o
		gcc a.c -o b → writes b (-o); reads a.c
		gcc a.c → reads a.c; writes a.out`)
}
