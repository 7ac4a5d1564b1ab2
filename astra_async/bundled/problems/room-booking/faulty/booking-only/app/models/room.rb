class Room < ApplicationRecord
  has_many :bookings

  validates :name, presence: true, uniqueness: true
  validates :capacity, numericality: { only_integer: true, greater_than: 0 }

  def bookings_between(from, to)
    bookings.where(cancelled: false).where("starts_at < ? AND ends_at > ?", to, from).order(:starts_at)
  end
end
