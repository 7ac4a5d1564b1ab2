# Packages go to $NUGET_PACKAGES, where a build without a network finds them.
mkdir -p "$NUGET_PACKAGES"
for file in $(find . -name '*.sln' -o -name '*.slnx' | head -n 1 | grep . || find . -name '*proj'); do
  attempt dotnet restore "$file" && continue
  if said 'NU1101|NU1301|Unable to load the service index|Resource temporarily unavailable|Name or service not known'; then
    echo "error: NuGet cannot be reached, and the project needs packages of it;" \
      "name an image that has them in the column image (or --image)"
  fi
  exit 1
done
chown -R 1000:1000 "$NUGET_PACKAGES"
