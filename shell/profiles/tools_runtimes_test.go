package profiles

import "testing"

func TestJava(t *testing.T) {
	testHarmless(t, `
		java -version
		java -jar target/app.jar --server.port=8081 -javaagent:x
		java -Xmx2g -XX:+UseG1GC -ea -Dspring.profiles.active=dev -jar app.jar
		java -cp out:lib/* com.example.Main
		java Main.java
		javac -d out -cp lib/a.jar src/Main.java
		javac Main.java
		jar tf app.jar
		jar cvf app.jar -C out .
		mvn clean install
		mvn -q -B test -Dtest=UserTest#login
		mvn package -DskipTests -pl core -am
		mvn dependency:tree
		mvn spring-boot:run
		./mvnw verify
		gradle build
		./gradlew test --tests com.example.UserTest --info
		./gradlew :app:assembleDebug -Pversion=1.2
		gradle tasks --all
		sbt test
		sbt 'testOnly com.example.UserSpec'
		ant build`)
	testAsking(t, `
		java -javaagent:x.jar -jar app.jar
		java -agentlib:jdwp=transport=dt_socket,server=y -jar app.jar
		java -agentpath:/tmp/x.so Main
		java -XX:OnError=id -jar app.jar
		java -XX:OnOutOfMemoryError=id Main
		java -XX:Flags=/tmp/x Main
		java -Xlog:gc:file=/home/dev/.bashrc Main
		java -Djava.security.policy=x Main
		java -Djava.library.path=/tmp Main
		java -Xbootclasspath/a:/tmp/x.jar Main
		java @args
		java -jar /tmp/evil.jar
		java -cp /tmp/evil Main
		java /tmp/Main.java
		javac -processor x A.java
		javac -J-javaagent:x A.java
		javac @args
		javac -d /tmp/x A.java
		jar cf /tmp/x.jar a
		jar cmf a b c
		jar i x
		mvn exec:exec
		mvn exec:java -Dexec.mainClass=x
		mvn -Dexec.executable=id verify
		mvn com.example:plugin:1.0:goal
		mvn deploy
		mvn -s /tmp/s.xml test
		mvn --settings=x test
		mvn -f /tmp/pom.xml test
		mvn -Dmaven.repo.local=/tmp/x test
		mvn -Dstyle=x test
		gradle -I x.gradle build
		gradle --init-script x.gradle build
		gradle -b /tmp/x.gradle build
		gradle -p /tmp/x build
		gradle -g /tmp/x build
		gradle -Dorg.gradle.java.home=/tmp/x build
		gradle -Dorg.gradle.jvmargs=-javaagent:x build
		gradle publish
		gradle --include-build /tmp/x build
		sbt 'set x := 1; run'
		ant -lib x build
		ant -f /tmp/x`)
}

func TestRuntimes(t *testing.T) {
	testHarmless(t, `
		ruby script/import.rb data.csv -e x
		ruby -w app.rb
		ruby -c app.rb
		ruby -v
		gem list
		bundle
		bundle install --jobs 4
		bundle exec rspec spec/models
		bundle exec rake db:migrate
		bundle exec rubocop -a
		rake
		rake test TEST=test/a_test.rb
		rspec spec/a_spec.rb:42 --format documentation
		rails test
		rails db:migrate RAILS_ENV=test
		rails server -p 4000
		rubocop -a lib
		perl script.pl a b
		perl -c script.pl
		perl -v
		php artisan migrate
		php -l src/A.php
		php -v
		composer install --no-dev -o
		composer test
		phpunit --filter testLogin tests
		mix
		mix test test/pager_test.exs:12 --seed 0 --trace
		mix test --only integration
		mix deps.get
		mix compile --warnings-as-errors
		mix format --check-formatted
		mix format lib/a.ex
		mix ecto.migrate
		mix phx.server
		mix run priv/seeds.exs
		mix credo --strict lib
		lua app.lua
		Rscript analyse.R
		julia app.jl
		dotnet build
		dotnet build -c Release --no-restore
		dotnet test --filter Name~Login
		dotnet run --project src/Api -- --port 3
		dotnet format
		swift build
		swift test --filter A
		xcodebuild -scheme App -sdk iphonesimulator test
		zig build test
		zig fmt src
		shellcheck -x scripts/a.sh
		shfmt -w scripts
		hadolint Dockerfile
		yamllint .
		markdownlint --fix README.md
		protoc -Iapi --go_out=. --go_opt=paths=source_relative api/a.proto
		buf lint
		buf generate
		sqlc generate
		hugo --minify
		hugo server -D
		mkdocs build
		jekyll serve
		air`)
	testAsking(t, `
		ruby
		ruby -
		ruby -e 'puts 1'
		ruby -rx app.rb
		ruby -I/tmp/x app.rb
		ruby -ne 1 f
		ruby /tmp/x.rb
		irb
		gem install rails
		gem push x.gem
		bundle exec id
		bundle exec ruby -e 1
		bundle config set path /tmp
		bundle install --gemfile=/tmp/Gemfile
		bundle add x --git https://example.com/x
		rake -f /tmp/Rakefile
		rake -r x
		rake -e 1
		rake RUBYOPT=-rx
		rspec -r ./x
		rspec -I /tmp
		rspec -f Evil::Formatter
		rspec /tmp/x_spec.rb
		rails runner 1
		rails console
		rails new x
		rubocop -r ./x
		rubocop -c /tmp/x.yml
		rubocop -f Evil
		perl
		perl -e 1
		perl -ne 'print'
		perl -pi.bak -e 1 f
		perl -MTest::More a.pl
		perl -I/tmp a.pl
		perl -d a.pl
		php -r 'echo 1;'
		php -d auto_prepend_file=x a.php
		php -S 0.0.0.0:80
		php -a
		php
		composer global require x/y
		mix test /tmp/a_test.exs
		mix test ../x/a_test.exs:3
		mix test --formatter Evil.Formatter
		mix run -e 'System.cmd("id", [])'
		mix run /tmp/x.exs
		mix run -r /tmp/x.exs
		mix do compile, cmd id
		mix cmd id
		mix eval 'IO.puts 1'
		mix format --dot-formatter /tmp/x.exs
		mix format /etc/x.exs
		mix archive.install hex phx_new
		mix local.hex --force
		mix hex.publish
		mix escript.install x
		mix credo --config-file /tmp/x.exs
		composer create-project x/y
		composer require ./x
		composer -d /tmp/x install
		phpunit --bootstrap x.php
		phpunit -c /tmp/phpunit.xml
		lua -e 1
		lua
		Rscript -e 1
		julia -e 1
		dotnet build /p:Csc=evil
		dotnet build -p:Csc=evil
		dotnet build /tmp/x.csproj
		dotnet run --project /tmp/x
		dotnet run -p:x=y
		dotnet test --settings /tmp/x
		dotnet tool install -g x
		dotnet nuget push x
		swift build -Xlinker x
		swift build --package-path /tmp/x
		xcodebuild -xcconfig /tmp/x
		xcodebuild CC=evil
		zig run /tmp/x.zig
		shellcheck --rcfile /tmp/x a.sh
		shfmt -w /etc/profile
		protoc --plugin=protoc-gen-x=./evil --x_out=. a.proto
		protoc --go_out=/tmp/x a.proto
		protoc --go_out=opt:/tmp/x a.proto
		protoc @args
		buf generate --template /tmp/x
		hugo -s /tmp/x
		hugo -d /tmp/x
		entr id
		watchexec id
		xdg-open README.md
		open .
		code --install-extension x`)
}
