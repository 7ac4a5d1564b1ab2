# What `require` finds without the project, in Ruby's own folders and in those of all gems.
command -v ruby >/dev/null && ruby - <<'RUBY' | sort -u >astra-installed/ruby
folders = $LOAD_PATH.map(&:to_s) + Gem::Specification.flat_map { |each| each.full_require_paths rescue [] }
folders.uniq.reject { |each| each == Dir.pwd }.each do |folder|
  Dir.glob("**/*.rb", base: folder) { |each| puts each.delete_suffix(".rb") } if File.directory?(folder)
end
RUBY
