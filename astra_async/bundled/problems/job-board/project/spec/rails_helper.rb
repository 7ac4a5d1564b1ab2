ENV["RAILS_ENV"] = "test"
require_relative "../config/application"

Rails.application.initialize!
require "rspec/rails"

ActiveRecord::Schema.verbose = false
load Rails.root.join("db/schema.rb")

# What the request specs share: an employer, a seeker, and the tokens that the account service gives.
module JobBoardRequests
  def self.included(group)
    group.let!(:grace) { User.create!(name: "Grace", role: "employer") }
    group.let!(:ada) { User.create!(name: "Ada", role: "seeker") }
  end

  def token(payload, key: Rails.application.secret_key_base, algorithm: "HS256")
    JWT.encode(payload, key, algorithm)
  end

  def as(user)
    { "Authorization" => "Bearer #{token({ user_id: user.id, exp: 1.hour.from_now.to_i })}" }
  end

  def answer
    [response.status, JSON.parse(response.body)]
  end
end

RSpec.configure do |config|
  config.include JobBoardRequests, type: :request
  config.use_transactional_fixtures = true
  config.infer_spec_type_from_file_location!
end
