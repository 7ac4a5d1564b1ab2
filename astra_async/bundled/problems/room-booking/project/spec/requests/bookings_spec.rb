require "rails_helper"

RSpec.describe "Bookings" do
  it "are made for a room" do
    book(oak, "09:00", "10:30", cancelled: true, id: 99)
    expect(answer).to eq(
      [201, { "id" => Booking.last.id, "room" => "Oak", "title" => "Review", "organiser" => "Grace",
              "attendees" => 4, "starts_at" => "2024-03-11T09:00:00Z", "ends_at" => "2024-03-11T10:30:00Z" }]
    )
    expect(Booking.last).to have_attributes(room_id: oak.id, cancelled: false)
    post "/rooms/#{ash.id + 99}/bookings", params: request_for("09:00", "10:00"), as: :json
    expect(answer).to eq([404, { "error" => "Not found" }])
  end

  it "are refused with every field that is wrong" do
    book(oak, "09:00", "10:00", title: " ", organiser: nil, attendees: 9)
    expect(answer).to eq(
      [422, { "errors" => { "title" => ["can't be blank"], "organiser" => ["can't be blank"],
                            "attendees" => ["exceeds the capacity of the room"] } }]
    )
    [0, 2.5, nil, "many"].each do |attendees|
      book(oak, "09:00", "10:00", attendees: attendees)
      expect(response).to have_http_status(422)
      expect(answer.last["errors"].keys).to eq(["attendees"])
    end
    book(oak, "10:00", "10:00")
    expect(answer).to eq([422, { "errors" => { "ends_at" => ["must be after the start"] } }])
    expect(Booking.count).to eq(0)
    book(oak, "09:00", "10:00", attendees: 8)
    expect(response).to have_http_status(201)
  end

  it "keep to quarters of an hour and to the opening hours of one day" do
    book(oak, "09:10", "10:00")
    expect(answer).to eq([422, { "errors" => { "starts_at" => ["must be on a quarter of an hour"] } }])
    book(oak, "09:15", "10:00", ends_at: "2024-03-11T10:00:30Z")
    expect(answer).to eq([422, { "errors" => { "ends_at" => ["must be on a quarter of an hour"] } }])
    outside = [422, { "errors" => { "starts_at" => ["is outside the opening hours"] } }]
    [%w[07:45 09:00], %w[17:00 18:15], %w[19:00 20:00]].each do |from, to|
      book(oak, from, to)
      expect(answer).to eq(outside)
    end
    book(oak, "09:00", "10:00", ends_at: at("10:00", day: "2024-03-12"))
    expect(answer).to eq(outside)
    book(oak, "09:00", "10:00", starts_at: "2024-03-11T09:00:00+02:00", ends_at: "2024-03-11T10:00:00+02:00")
    expect(answer).to eq(outside)
    book(oak, "08:00", "18:00")
    expect(response).to have_http_status(201)
  end

  it "never overlap in one room" do
    first = booked(oak, "09:00", "10:00")
    second = booked(oak, "10:15", "11:00")
    booked(oak, "11:00", "12:00", cancelled: true)
    { %w[09:30 10:15] => [first], %w[08:00 12:00] => [first, second], %w[10:30 10:45] => [second] }
      .each do |(from, to), conflicts|
        book(oak, from, to)
        expect(answer).to eq([409, { "error" => "Room is taken", "conflicts" => conflicts.map(&:id) }])
      end
    [%w[08:00 09:00], %w[10:00 10:15], %w[11:00 12:00]].each do |from, to|
      book(oak, from, to)
      expect(response).to have_http_status(201)
    end
    book(elm, "09:00", "10:00")
    expect(response).to have_http_status(201)
  end

  it "repeat every week, all of them or none" do
    taken = booked(oak, "09:30", "10:00", day: "2024-03-25")
    book(oak, "09:00", "10:00", weeks: 3)
    expect(answer).to eq([409, { "error" => "Room is taken", "conflicts" => [taken.id] }])
    expect(Booking.count).to eq(1)
    book(oak, "09:00", "10:00", weeks: 2)
    expect(answer.first).to eq(201)
    expect(answer.last["starts_at"]).to eq("2024-03-11T09:00:00Z")
    expect(Booking.where.not(id: taken.id).order(:starts_at).map { |booking| booking.ends_at.iso8601 })
      .to eq(%w[2024-03-11T10:00:00Z 2024-03-18T10:00:00Z])
    [0, 53, "often"].each do |weeks|
      book(elm, "09:00", "10:00", weeks: weeks)
      expect(answer).to eq([422, { "errors" => { "weeks" => ["must be from 1 to 52"] } }])
    end
  end

  it "move under the same rules, and do not stand in their own way" do
    review = booked(oak, "09:00", "10:00")
    other = booked(oak, "11:00", "12:00")
    patch "/bookings/#{review.id}", params: { starts_at: at("09:30"), ends_at: at("11:00") }, as: :json
    expect(answer.first).to eq(200)
    expect(answer.last).to include("title" => "Stand-up", "starts_at" => at("09:30"), "ends_at" => at("11:00"))
    patch "/bookings/#{review.id}", params: { ends_at: at("11:15") }, as: :json
    expect(answer).to eq([409, { "error" => "Room is taken", "conflicts" => [other.id] }])
    patch "/bookings/#{review.id}", params: { ends_at: at("09:30") }, as: :json
    expect(answer).to eq([422, { "errors" => { "ends_at" => ["must be after the start"] } }])
    expect(review.reload.ends_at).to eq(Time.utc(2024, 3, 11, 11))
  end

  it "are cancelled once and kept" do
    booking = booked(oak, "09:00", "10:00")
    delete "/bookings/#{booking.id}"
    expect(answer).to eq([204, nil])
    expect(booking.reload.cancelled).to be(true)
    delete "/bookings/#{booking.id}"
    expect(answer).to eq([404, { "error" => "Not found" }])
    patch "/bookings/#{booking.id}", params: { ends_at: at("11:00") }, as: :json
    expect(response).to have_http_status(404)
    book(oak, "09:00", "10:00")
    expect(response).to have_http_status(201)
  end
end
