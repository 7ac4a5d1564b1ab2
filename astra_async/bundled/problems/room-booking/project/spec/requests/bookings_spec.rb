require "rails_helper"

RSpec.describe "Bookings" do
  it "are made for a room" do
    book(oak, "09:00", "10:30", cancelled: true, id: 99)
    expect(answer).to eq(
      [201, { "id" => Booking.last&.id, "room" => "Oak", "title" => "Review", "organiser" => "Grace",
              "attendees" => 4, "starts_at" => "2024-03-11T09:00:00Z", "ends_at" => "2024-03-11T10:30:00Z" }]
    )
    expect(Booking.last).to have_attributes(room_id: oak.id, cancelled: false)
    book(Room.new(id: elm.id + 99), "09:00", "10:00")
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

  it "lie within the opening hours of one day" do
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

  it "are cancelled once and kept" do
    booking = booked(oak, "09:00", "10:00")
    delete "/bookings/#{booking.id}"
    expect(answer).to eq([204, nil])
    expect(booking.reload.cancelled).to be(true)
    delete "/bookings/#{booking.id}"
    expect(answer).to eq([404, { "error" => "Not found" }])
    book(oak, "09:00", "10:00")
    expect(response).to have_http_status(201)
  end
end
