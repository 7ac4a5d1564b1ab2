require "fileutils"
require "securerandom"

# Keeps uploaded CVs outside the database, under keys that say nothing about their owners.
class CvStore
  class << self
    # Stores the bytes and returns their key.
    def save(bytes)
      key = SecureRandom.hex(16)
      FileUtils.mkdir_p(folder)
      File.binwrite(folder.join(key), bytes)
      key
    end

    def read(key)
      File.binread(folder.join(key))
    end

    # The keys of everything that is stored.
    def keys
      folder.exist? ? folder.children.map { |path| path.basename.to_s } : []
    end

    def clear
      FileUtils.rm_rf(folder)
    end

    private

    def folder
      Rails.application.config.cv_folder
    end
  end
end
