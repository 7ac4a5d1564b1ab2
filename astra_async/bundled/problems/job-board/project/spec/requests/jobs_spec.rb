require "rails_helper"

RSpec.describe "Jobs" do
  let(:welder) do
    { title: "Welder", company: "Iron & Co", location: "Leeds", description: "Joins steel beams", salary: 31_000 }
  end

  def offer(title, company, location)
    Job.create!(title: title, company: company, location: location, description: "Full time", user_id: grace.id)
  end

  def found(query)
    get "/jobs", params: query
    expect(response).to have_http_status(200)
    answer.last.map { |job| job["title"] }
  end

  it "belong to the employer who posts them and are shown to everybody" do
    post "/jobs", params: welder.merge(user_id: ada.id, id: 77), headers: as(grace), as: :json
    job = welder.stringify_keys.merge("id" => Job.last&.id, "employer" => { "id" => grace.id, "name" => "Grace" })
    expect(answer).to eq([201, job])
    get "/jobs"
    expect(answer).to eq([200, [job]])
  end

  it "are refused without a required field or with an impossible salary" do
    post "/jobs", params: { title: " ", salary: 1000 }, headers: as(grace), as: :json
    blank = %w[title company location description].to_h { |field| [field, ["can't be blank"]] }
    expect(answer).to eq([422, { "errors" => blank }])
    [0, -1, 1000.5, "a lot"].each do |salary|
      post "/jobs", params: welder.merge(salary: salary), headers: as(grace), as: :json
      expect(response).to have_http_status(422)
      expect(answer.last["errors"].keys).to eq(["salary"])
    end
    expect(Job.count).to eq(0)
    post "/jobs", params: welder.except(:salary), headers: as(grace), as: :json
    expect([response.status, answer.last["salary"]]).to eq([201, nil])
  end

  it "are posted only by employers with a valid token" do
    soon = 1.hour.from_now.to_i
    refused = [
      nil,
      "Bearer",
      "Bearer #{token({ user_id: grace.id, exp: 1.minute.ago.to_i })}",
      "Bearer #{token({ user_id: grace.id, exp: soon }, key: 'another key')}",
      "Bearer #{token({ user_id: grace.id, exp: soon }, key: nil, algorithm: 'none')}",
      "Bearer #{token({ user_id: grace.id + 99, exp: soon })}"
    ]
    refused.each do |header|
      post "/jobs", params: welder, headers: { "Authorization" => header }.compact, as: :json
      expect(answer).to eq([401, { "error" => "Unauthorized" }])
    end
    post "/jobs", params: welder, headers: as(ada), as: :json
    expect(answer).to eq([403, { "error" => "Forbidden" }])
    expect(Job.count).to eq(0)
    post "/jobs", params: welder, headers: as(grace), as: :json
    expect(response).to have_http_status(201)
  end

  it "are listed from the newest on and found by title, company and location" do
    offer("Ruby developer", "Iron & Co", "Leeds")
    offer("Welder", "Iron & Co", "York")
    offer("Senior Ruby Developer", "Rubyists", "Greater Leeds")
    expect(found({})).to eq(["Senior Ruby Developer", "Welder", "Ruby developer"])
    expect(found(title: "ruby DEV")).to eq(["Senior Ruby Developer", "Ruby developer"])
    expect(found(title: "ruby", company: "iron", location: "leeds")).to eq(["Ruby developer"])
    expect(found(title: "baker")).to eq([])
  end

  it "are searched for literally and not by empty fields" do
    offer("100% remote tester", "a_b", "Anywhere")
    offer("1000 tests a day", "a-b", "Anywhere")
    expect(found(title: "%")).to eq(["100% remote tester"])
    expect(found(company: "a_b")).to eq(["100% remote tester"])
    expect(found(title: "x' OR '1'='1")).to eq([])
    expect(found(title: "", company: "  ", location: "any")).to eq(["1000 tests a day", "100% remote tester"])
  end
end
