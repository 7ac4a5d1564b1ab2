require "rails_helper"

RSpec.describe "Rooms" do
  def found(query)
    get "/rooms", params: query
    expect(response).to have_http_status(200)
    JSON.parse(response.body).map { |room| room["name"] }
  end

  it "are still listed by name" do
    get "/rooms"
    expect(answer).to eq([200, [ash, elm, oak].map { |room| room.slice("id", "name", "capacity") }])
  end

  it "are found by capacity and by the time for which they are free" do
    booked(oak, "09:00", "10:00")
    booked(ash, "09:00", "10:00", cancelled: true)
    expect(found(capacity: 8)).to eq(%w[Elm Oak])
    expect(found(from: at("08:30"), to: at("09:15"))).to eq(%w[Ash Elm])
    expect(found(from: at("08:00"), to: at("12:00"), capacity: 5)).to eq(%w[Elm])
    expect(found(from: at("08:00"), to: at("09:00"))).to eq(%w[Ash Elm Oak])
    expect(found(from: at("10:00"), to: at("10:30"))).to eq(%w[Ash Elm Oak])
  end
end
