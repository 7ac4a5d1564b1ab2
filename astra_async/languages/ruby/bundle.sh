# $FOLDER holds the Gemfile; $GEMS are the names of its gems.
mkdir -p /projects/bundle
cp -r "$FOLDER"/. /projects/bundle/
cd /projects/bundle || exit
export BUNDLE_GEMFILE=/projects/bundle/Gemfile BUNDLE_APP_CONFIG=/projects/bundle/.bundle
# The only Ruby is Debian's: a project that asks for another is tried all the same.
sed -i -E '/^[[:space:]]*ruby[[:space:](]/d' Gemfile
[ -f Gemfile.lock ] && sed -i -e '/^RUBY VERSION/,/^$/d' -e '/^BUNDLED WITH/,$d' Gemfile.lock

unreachable='Could not reach host|Could not fetch specs|Network error|Gem::RemoteFetcher|timed out|SSL'
from_debian() {
  note 'rubygems.org cannot be reached: Debian has these gems, not the versions of Gemfile.lock'
  local names=() gem
  apt-get update -qq
  for gem in $GEMS; do
    for package in "ruby-${gem//_/-}" "$gem"; do
      # Not every package that is called like a gem is one.
      if grep -qE '^(Section: ruby|Depends:.*\bruby)' <<<"$(apt-cache show "$package" 2>/dev/null)"; then
        names+=("$package") && break
      fi
    done
  done
  packages "${names[@]}" || return 1
  rm -f Gemfile.lock
  bundle config set --local without development
  for _ in $GEMS $GEMS; do
    attempt bundle install --local && return 0
    # First any version of the gem that is missed, then the Gemfile without it.
    gem=$(sed -nE "s/.*[Cc]ould not find (compatible versions|gem|gems matching) ?'?\"?([A-Za-z0-9_.-]+).*/\2/p" "$log" | head -n 1)
    [ -n "$gem" ] || return 1
    if asked=$(grep -E "^[[:space:]]*gem[ (]*['\"]$gem['\"].*['\"][^'\"]*[0-9]" Gemfile); then
      asked=$(sed -nE "s/.*$gem['\"] *, *['\"]([^'\"]*[0-9][^'\"]*)['\"].*/\1/p" <<<"$asked" | head -n 1)
      have=$(ruby -e 'puts Gem::Specification.find_all_by_name(ARGV[0]).map(&:version).max' "$gem" 2>/dev/null)
      # Another patch of the same gem is a nearby one; another major version is another library.
      if [ -n "$have" ] && [ "$(sed -E 's/^[^0-9]*([0-9]+).*/\1/' <<<"$asked")" != "${have%%.*}" ]; then
        echo "error: the Gemfile wants $gem $asked, and rubygems.org cannot be reached; Debian has $gem $have, which is" \
          "another major version: name an image that has $gem $asked in the column image (or --image)"
        return 1
      fi
      note "gem $gem $asked: took Debian's $have"
      sed -i -E "s/^([[:space:]]*gem[ (]*['\"]$gem['\"]).*/\1/" Gemfile
    else
      note "gem $gem: not to be had, left out"
      sed -i -E "/^[[:space:]]*gem[ (]*['\"]$gem['\"]/d" Gemfile
    fi
  done
  return 1
}
attempt bundle install || {
  if said "$unreachable"; then
    from_debian || exit 1
  else
    note 'the versions of Gemfile.lock cannot be installed on this Ruby: took newer ones that the Gemfile allows'
    rm -f Gemfile.lock
    attempt bundle install || exit 1
  fi
}
chown -R 1000:1000 /projects/bundle
if grep -qE "^[[:space:]]*gem[ (]*['\"]rspec" Gemfile; then starts bundle exec rspec --version || exit 1; fi
