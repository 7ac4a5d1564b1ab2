require "rails_helper"

RSpec.describe "Accounts" do
  let(:ada) { { name: "Ada", email: "Ada@Example.com", password: "correct horse", role: "seeker" } }

  def register(fields)
    post "/register", params: fields, as: :json
  end

  it "registers a user and keeps the password to itself" do
    register(ada)
    expect(response).to have_http_status(201)
    user = User.last
    expect(json).to eq("id" => user.id, "name" => "Ada", "email" => "ada@example.com", "role" => "seeker")
    expect(user.authenticate("correct horse")).to eq(user)
  end

  it "refuses invalid registrations and names the fields" do
    register(ada)
    {
      { email: "ADA@example.com" } => { "email" => ["has already been taken"] },
      { email: "grace.example.com" } => { "email" => ["is invalid"] },
      { email: "grace@example.com", password: "7 chars" } =>
        { "password" => ["is too short (minimum is 8 characters)"] },
      { email: "grace@example.com", role: "admin", name: " " } =>
        { "name" => ["can't be blank"], "role" => ["is not included in the list"] }
    }.each do |change, errors|
      register(ada.merge(change))
      expect([response.status, json]).to eq([422, { "errors" => errors }])
    end
    expect(User.count).to eq(1)
  end

  it "logs in with a token that ends after 24 hours" do
    user = account("employer", "Grace")
    travel_to Time.utc(2024, 3, 11, 9) do
      post "/login", params: { email: "GRACE@example.com", password: "correct horse" }, as: :json
      expect(response).to have_http_status(200)
      payload, header = JWT.decode(json["token"], Rails.application.secret_key_base, true, algorithm: "HS256")
      expect(header["alg"]).to eq("HS256")
      expect(payload).to include("user_id" => user.id, "exp" => Time.utc(2024, 3, 12, 9).to_i)
    end
    [["grace@example.com", "correct horses"], ["ada@example.com", "correct horse"]].each do |email, password|
      post "/login", params: { email: email, password: password }, as: :json
      expect([response.status, json]).to eq([401, { "error" => "Invalid email or password" }])
    end
  end
end
