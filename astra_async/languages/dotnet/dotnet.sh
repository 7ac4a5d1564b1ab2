# Packages go to $NUGET_PACKAGES, where a build without a network finds them.
for file in $(find . -name '*.sln' -o -name '*.slnx' | head -n 1 | grep . || find . -name '*proj'); do
  attempt dotnet restore "$file" || exit 1
done
chown -R 1000:1000 "$NUGET_PACKAGES"
