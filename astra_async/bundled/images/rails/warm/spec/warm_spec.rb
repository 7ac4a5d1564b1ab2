ENV["RAILS_ENV"] = "test"
require_relative "../config/application"

Rails.application.initialize!
require "rspec/rails"

ActiveRecord::Schema.define do
  create_table :users do |t|
    t.string :name
    t.string :password_digest
    t.timestamps
  end
  create_table :jobs do |t|
    t.references :user, foreign_key: true
    t.string :title
  end
end

class User < ActiveRecord::Base
  has_secure_password
  has_many :jobs
  validates :name, presence: true, uniqueness: true, length: { maximum: 9 }, format: /\A\w+\z/
end

class Job < ActiveRecord::Base
  belongs_to :user
  validates :title, inclusion: { in: %w[welder] }, numericality: true, allow_nil: true
end

class UsersController < ActionController::API
  rescue_from(ActiveRecord::RecordNotFound) { head :not_found }

  def create
    user = User.create(params.permit(:name, :password))
    token = JWT.encode({ user_id: user.id, exp: 1.hour.from_now.to_i }, "key", "HS256")
    JWT.decode(token, "key", true, algorithm: "HS256")
    render json: { user: user, errors: user.errors, jobs: user.jobs.includes(:user).order(:id), token: token }
  end
end

Rails.application.routes.draw { resources :users, only: :create }

RSpec.describe "Everything that a run loads", type: :request do
  include ActiveSupport::Testing::TimeHelpers

  before { ActiveRecord::Base.connection.begin_transaction(joinable: false) }
  after { ActiveRecord::Base.connection.rollback_transaction }

  it "works" do
    travel_to(Time.utc(2024, 3, 11)) { post "/users", params: { name: "ada", password: "secret" }, as: :json }
    expect(response).to have_http_status(200)
    file = Rack::Test::UploadedFile.new(StringIO.new("a file"), "text/plain", true, original_filename: "a.txt")
    post "/users", params: { name: "ada lovelace", password: "secret", file: file }
    expect(JSON.parse(response.body)["errors"].keys).to eq(["name"])
  end
end
