ActiveRecord::Schema.define(version: 2024_02_05_080000) do
  create_table :rooms do |t|
    t.string :name, null: false, index: { unique: true }
    t.integer :capacity, null: false
  end

  create_table :bookings do |t|
    t.references :room, null: false, foreign_key: true
    t.string :title
    t.string :organiser
    t.integer :attendees
    t.datetime :starts_at
    t.datetime :ends_at
    t.boolean :cancelled, null: false, default: false
    t.index %i[room_id starts_at]
  end
end
