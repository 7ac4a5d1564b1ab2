ENV["RAILS_ENV"] = "test"
require_relative "../config/environment"
require "rspec/rails"

ActiveRecord::Schema.verbose = false
load Rails.root.join("db/schema.rb")

# What the request specs share.
module JobBoardRequests
  def account(role, name)
    User.create!(name: name, email: "#{name.downcase}@example.com", password: "correct horse", role: role)
  end

  def token(payload, key: Rails.application.secret_key_base, algorithm: "HS256")
    JWT.encode(payload, key, algorithm)
  end

  def as(user)
    { "Authorization" => "Bearer #{token({ user_id: user.id, exp: 1.hour.from_now.to_i })}" }
  end

  def json
    JSON.parse(response.body)
  end
end

RSpec.configure do |config|
  config.include JobBoardRequests, type: :request
  config.include ActiveSupport::Testing::TimeHelpers
  config.use_transactional_fixtures = true
  config.infer_spec_type_from_file_location!
  config.before { CvStore.clear }
end
