require "rails_helper"

RSpec.describe "Pages of bookings" do
  before do
    (1..23).to_a.reverse_each { |day| booked(oak, "09:00", "10:00", day: format("2024-05-%02d", day)) }
    booked(oak, "12:00", "13:00", day: "2024-05-01", cancelled: true)
    booked(elm, "09:00", "10:00")
  end

  def page(query = {})
    get "/rooms/#{oak.id}/bookings", params: query
    expect(response).to have_http_status(200)
    body = JSON.parse(response.body)
    [body["bookings"].map { |booking| booking["starts_at"][8, 2].to_i }, body.except("bookings")]
  end

  it "begin with the earliest and say how many there are" do
    days, about = page
    expect(days).to eq((1..10).to_a)
    expect(about).to eq("page" => 1, "per_page" => 10, "total" => 23, "pages" => 3)
    expect(page(page: 3).first).to eq([21, 22, 23])
    days, about = page(page: 2, per_page: 7)
    expect(days).to eq((8..14).to_a)
    expect(about).to eq("page" => 2, "per_page" => 7, "total" => 23, "pages" => 4)
    expect(page(page: 9)).to eq([[], { "page" => 9, "per_page" => 10, "total" => 23, "pages" => 3 }])
  end

  it "hold at most fifty, and are asked for in whole numbers from 1" do
    expect(page(per_page: 1000).last).to eq("page" => 1, "per_page" => 50, "total" => 23, "pages" => 1)
    [{ page: 0 }, { page: -1 }, { page: "two" }, { page: "1.5" }, { per_page: 0 }, { per_page: "" }].each do |query|
      get "/rooms/#{oak.id}/bookings", params: query
      expect(answer).to eq([400, { "error" => "Invalid page" }])
    end
  end
end
